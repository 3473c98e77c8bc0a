"""Drawing code that several pages share: markup, formatting, charts, tables, keyboard, copying, edit conflicts, style."""
