"""Streamlit pages, one folder each with `page.py` (read, call, draw) and the parts of that page alone.  `ui`, `frame`,
`session` and `server` have the parts that pages share."""
