"""Corpora."""

import streamlit as st

st.title("Corpora")
