"""Documents of office programs: Word, Excel, PowerPoint and OpenDocument."""
