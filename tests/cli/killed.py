"""A program that is killed while it measures."""

from __future__ import annotations

KILLED_ANSWERING = """
import os, signal, sys
from polyad.cli import main
from polyad.evaluation.answers.records import AnswerRecord, Judgement
from polyad.evaluation.files import RecordFile

left = int(sys.argv.pop(1))

keep = RecordFile.append

def kept(self, *records):
    global left
    keep(self, *records)
    left -= isinstance(records[0], AnswerRecord | Judgement)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

RecordFile.append = kept
main()
"""
"""Takes a number before the arguments of polyad: so many answers and judgements are kept before it is killed."""
