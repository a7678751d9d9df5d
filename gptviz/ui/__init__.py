"""The Streamlit side: with app.py and pages/, the only place that imports streamlit."""
