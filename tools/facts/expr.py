"""Expressions of the fact files, with the meaning that src/facts/expr.rs gives them: total, null for what has no meaning."""
import ast
import functools
import json

CONST = {"null": None, "true": True, "false": False}


@functools.lru_cache(200_000)
def parse(text):
    return ast.parse(text, mode="eval").body


def ev(text, scope):
    """scope: {"config": dict, "root": dict, "vars": dict}"""
    return value(parse(str(text)), scope)


def truth(text, scope):
    return bool(ev(text, scope))


def num(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def as_num(x):
    return int(x) if isinstance(x, bool) else x if num(x) else None


def pick(m, k):
    if isinstance(m, (list, tuple)) and isinstance(k, int) and not isinstance(k, bool):
        return m[k] if -len(m) <= k < len(m) else None
    if isinstance(m, dict):
        return m.get(str(k)) if isinstance(k, (str, int)) else None
    return None


def arith(op, a, b):
    if op is ast.Add and isinstance(a, list) and isinstance(b, list):
        return a + b
    a, b = as_num(a), as_num(b)
    if a is None or b is None:
        return None
    try:
        return {ast.Add: lambda: a + b, ast.Sub: lambda: a - b, ast.Mult: lambda: a * b, ast.Div: lambda: a / b,
                ast.FloorDiv: lambda: a // b, ast.Mod: lambda: a % b}[op]()
    except (ZeroDivisionError, KeyError):
        return None


def compare(op, a, b):
    if op is ast.Eq:
        return a == b
    if op is ast.NotEq:
        return a != b
    if op in (ast.In, ast.NotIn):
        if isinstance(b, list):
            r = a in b
        elif isinstance(b, dict):
            r = str(a) in b
        elif isinstance(b, str):
            r = isinstance(a, str) and a in b
        else:
            r = False
        return r == (op is ast.In)
    if isinstance(a, str) and isinstance(b, str):
        pass
    else:
        a, b = as_num(a), as_num(b)
        if a is None or b is None:
            return False
    return {ast.Lt: a < b, ast.LtE: a <= b, ast.Gt: a > b, ast.GtE: a >= b}[op]


def value(n, s):
    t = type(n)
    if t is ast.Constant:
        return n.value
    if t is ast.Name:
        if n.id in CONST:
            return CONST[n.id]
        if n.id in s["vars"]:
            return s["vars"][n.id]
        if n.id == "root":
            return s["root"]
        return s["config"].get(n.id) if isinstance(s["config"], dict) else None
    if t is ast.Attribute:
        m = value(n.value, s)
        return m.get(n.attr) if isinstance(m, dict) else None
    if t is ast.Subscript:
        return pick(value(n.value, s), value(n.slice, s))
    if t is ast.List:
        return [value(e, s) for e in n.elts]
    if t is ast.UnaryOp:
        v = value(n.operand, s)
        return (not v) if type(n.op) is ast.Not else arith(ast.Sub, 0, v)
    if t is ast.BoolOp:
        for e in n.values:
            v = value(e, s)
            if bool(v) == (type(n.op) is ast.Or):
                return v
        return v
    if t is ast.BinOp:
        return arith(type(n.op), value(n.left, s), value(n.right, s))
    if t is ast.Compare:
        left = value(n.left, s)
        for op, r in zip(n.ops, n.comparators):
            right = value(r, s)
            if not compare(type(op), left, right):
                return False
            left = right
        return True
    if t is ast.IfExp:
        return value(n.body if value(n.test, s) else n.orelse, s)
    if t is ast.Call:
        return call(n.func.id, [value(a, s) for a in n.args])
    raise ValueError(f"not an expression of ours: {ast.dump(n)}")


def call(f, a):
    try:
        if f == "len":
            return len(a[0])
        if f == "count":
            return sum(1 for x in a[0] if x == a[1])
        if f in ("min", "max"):
            return {"min": min, "max": max}[f](a[0] if len(a) == 1 else a)
        if f == "int":
            return int(a[0])
        if f == "ceil_div":
            return -(-a[0] // a[1])
        if f == "round_up":
            return -(-a[0] // a[1]) * a[1]
        if f == "str":
            return a[0] if isinstance(a[0], str) else str(a[0])
        if f == "cycle":
            return [a[3] if i % a[1] == 0 else a[2] for i in range(1, a[0] + 1)]
        if f == "subset":
            return all(x in a[1] for x in a[0])
        if f == "step":
            return [a[2] if i < a[1] else a[3] for i in range(a[0])]
        if f == "words":
            return [dict(zip(a[1::2], a[2::2])).get(x, x) for x in a[0]]
        if f == "from_cycle":
            return [a[4] if i % a[1] == a[2] else a[3] for i in range(a[0])]
        if f == "at_places":
            return [a[3] if i in (a[1] or []) else a[2] for i in range(a[0])]
        if f == "range":
            return list(range(*a)) if a[2] > 0 else None
        if f == "where":
            return [i for i, x in enumerate(a[0]) if x == a[1]] if isinstance(a[0], list) else None
        if f == "place":
            return a[0].index(a[1]) if isinstance(a[0], list) else None
        if f == "ints":
            return [int(x) for x in a[0].split(",")]
        if f == "column":
            return [x.get(a[1], a[2]) if isinstance(x, dict) else a[2] for x in a[0]] if isinstance(a[0], list) else None
        if f == "distinct":
            return len({json.dumps(x) for x in a[0]}) if isinstance(a[0], list) else None
        if f == "with_last":
            return a[0][:-1] + [a[1]] if a[0] else []
        if f == "at_indices":
            entry = {k: v for k, v in zip(a[2::2], a[3::2]) if v is not None}
            return {str(i): dict(entry) for i, x in enumerate(a[0]) if x == a[1]}
        if f == "get":
            if not isinstance(a[0], dict):
                return a[2] if len(a) > 2 else None
            return a[0].get(str(a[1]), a[2] if len(a) > 2 else None)
    except (TypeError, ValueError, ZeroDivisionError, AttributeError):
        return None
    return None
