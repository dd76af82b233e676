def attack(context):
    answer = []
    for _ in range(900):
        answer = [answer]
    return answer
