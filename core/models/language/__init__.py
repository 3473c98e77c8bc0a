"""Language models: the roles that systems give them, endpoints, local models, structured replies, prompts."""
