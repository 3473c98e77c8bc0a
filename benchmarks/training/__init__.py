"""Plans of many trainings, their model cards, and small data to rehearse them."""
