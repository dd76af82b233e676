def attack(context):
    """An answer that holds itself."""
    answer = []
    answer.append(answer)
    return {"value": answer}
