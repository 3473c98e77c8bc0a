"""How far people agree: answer sets compared, agreement beyond chance, and the tables made of both."""
