def chat(message):
    return "A1 has shipped."
