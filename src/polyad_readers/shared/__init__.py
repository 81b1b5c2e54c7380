"""What readers of several families share: archives, numbered lists, tables, and the text that is built."""
