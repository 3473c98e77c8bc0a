"""Streamlit pages: read, call, draw.  Files with a leading underscore are parts of pages."""
