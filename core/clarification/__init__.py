"""From a prompt question and an answer to the disambiguated question: candidate edits, the round trip, and who writes."""
