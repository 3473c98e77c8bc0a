"""Streamlit pages, a file each: read, call, draw.  What they are made of lives in the folders below."""
