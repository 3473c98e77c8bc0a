"""Everything outside Streamlit's script runs: launch, request guard, headers, icon."""
