"""The default retriever: links and similarities, weighed by what was learned on questions with known evidence."""
