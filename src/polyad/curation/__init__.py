"""What users state about an index: retracted facts, aliases of entities and disabled documents.

Documents state facts; users correct them. Corrections are stored apart from the documents, by content, so that they
survive when a document is indexed again. The store holds each document after its corrections, and the passages before
in the namespace :data:`polyad.protocols.store.ORIGINALS`, so that a correction can be undone without a language model
or an embedder. All retrievers, lookups and statistics read the corrected documents.
"""
