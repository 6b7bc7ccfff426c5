"""Tells, without running a file, which names it binds at its top level.

Run by ``python -I``, so that no file of the current folder or of PYTHONPATH is imported here. A worker finds numpy there
too: the folders are looked through for it at the end, which runs nothing.
"""

import ast
import importlib.util
import json
import os
import site
import sys

path, name = sys.argv[1:]
found = {"version": list(sys.version_info[:2])}
try:
    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
except (SyntaxError, ValueError) as error:
    found["error"] = {"line": getattr(error, "lineno", None), "message": getattr(error, "msg", None) or str(error)}
    tree = ast.Module([], [])
names, functions, is_open = set(), [], False
for node in ast.walk(tree):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        names.add(node.name)
        if node in tree.body:
            functions.append(node.name)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        names.add(node.id)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
# A file may bind names in ways that only running it shows.
is_open = "*" in names or "__getattr__" in names or "globals" in {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
found["functions"] = functions
found["bound"] = is_open or name.partition(".")[0] in names
sys.path += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
if sys.prefix == sys.base_prefix and "PYTHONNOUSERSITE" not in os.environ:
    sys.path.append(site.getusersitepackages())
found["numpy"] = importlib.util.find_spec("numpy") is not None
print(json.dumps(found))
