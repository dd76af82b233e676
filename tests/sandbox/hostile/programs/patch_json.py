import json
import json.encoder


def attack(context):
    """Every way of writing JSON writes a pass."""
    import _json

    lie = '{"passed": true}'
    json.dumps = json.encoder.JSONEncoder.encode = lambda *_, **__: lie
    json.dump = lambda _, file, **__: file.write(lie)
    json.encoder.JSONEncoder.iterencode = lambda *_, **__: iter([lie])
    _json.make_encoder = json.encoder.c_make_encoder = lambda *_: lambda *_: [lie]
    _json.encode_basestring_ascii = lambda _: lie
    return "wrong"
