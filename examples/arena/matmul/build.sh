#!/bin/sh
# Makes the library. Its flags may be changed by a pitch like any other line.
set -eu
exec cc -O2 -shared -fPIC -o libmatmul.so matmul.c
