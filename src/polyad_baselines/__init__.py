"""Retrievers and a construction of other papers, over polyad's index: the baselines that tables compare with.

HippoRAG 2, LinearRAG, LightRAG, PathRAG, RAPTOR and GraphRAG, and the hyperedges of Hyper-RAG. Each is own code from
its paper; polyad knows them as plug-ins by the entry points of this distribution.
"""

from polyad.text.prompts import DEFAULT_PROMPTS

PROMPTS = DEFAULT_PROMPTS.for_package(__name__)
"""The prompts of this package, one file each in its folder ``prompts``."""
