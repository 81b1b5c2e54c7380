"""An index as it was at one moment: the read side of every retriever, advanced by what changes."""
