"""A program that is killed while it measures."""

from __future__ import annotations

KILLED_ANSWERING = """
import os, signal, sys
from polyad.cli import main
from polyad.evaluation.answers.records import AnswerWriter

left = int(sys.argv.pop(1))

def killing(keep):
    def kept(self, record):
        global left
        keep(self, record)
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
    return kept

AnswerWriter.add_answer = killing(AnswerWriter.add_answer)
AnswerWriter.add_judgement = killing(AnswerWriter.add_judgement)
main()
"""
"""Takes a number before the arguments of polyad: so many answers and judgements are kept before it is killed."""
