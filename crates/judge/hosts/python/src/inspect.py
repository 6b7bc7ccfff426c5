"""Tells, without running it, which names a file or a module binds at its top level.

Run by ``python -I``, so that no file of the current folder or of PYTHONPATH is imported here. A worker finds modules there
too: once everything is imported, its folders are looked through for them, which runs nothing.
"""

import ast
import importlib.util
import json
import os
import site
import sys
from importlib.machinery import PathFinder


def spec_of(module):
    """How a module is imported, and the part of its name that is found; importing the packages around it would run them."""
    first, *rest = module.split(".")
    spec, found = importlib.util.find_spec(first), first
    for part in rest:
        inner = PathFinder.find_spec(f"{found}.{part}", spec and spec.submodule_search_locations)
        if inner is None:
            break
        spec, found = inner, f"{found}.{part}"
    return spec, found


sys.path += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
if sys.prefix == sys.base_prefix and "PYTHONNOUSERSITE" not in os.environ:
    sys.path.append(site.getusersitepackages())
path, name = sys.argv[1:]
found = {"version": list(sys.version_info[:2]), "numpy": importlib.util.find_spec("numpy") is not None}
# Packages, and modules that are not Python, may bind names in ways that no source shows.
is_open = False
if not os.path.isabs(path):
    spec, whole = spec_of(path)
    found["module"] = spec is not None
    is_open = spec is None or whole != path or not spec.has_location or not spec.origin.endswith(".py")
    is_open = is_open or spec.submodule_search_locations is not None
    path = os.devnull if is_open else spec.origin
    found["file"] = path
try:
    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
except (SyntaxError, ValueError) as error:
    found["error"] = {"line": getattr(error, "lineno", None), "message": getattr(error, "msg", None) or str(error)}
    tree = ast.Module([], [])
names, functions = set(), []
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
is_open = is_open or "*" in names or "__getattr__" in names or "globals" in {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
found["functions"] = functions
found["bound"] = is_open or name.partition(".")[0] in names
# Which arguments it takes by name is plain only of a function that the file binds once, at its top level, undecorated,
# and that takes no `**` others.
same = [node for node in ast.walk(tree) if name in (getattr(node, "name", None), getattr(node, "id", None))]
same = [node for node in same if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store)]
if not is_open and len(same) == 1 and isinstance(same[0], ast.FunctionDef) and same[0] in tree.body:
    arguments = same[0].args
    if not same[0].decorator_list and arguments.kwarg is None:
        found["takes"] = [argument.arg for argument in arguments.args + arguments.kwonlyargs]
print(json.dumps(found))
