"""C++ with GCC."""

from sandbox.languages.language import Language

LANGUAGE = Language(
    name="cpp",
    title="C++",
    file="program.cpp",
    stub="int main() {\n    return 0;\n}\n",
    tools=("g++",),
    install="apt install g++",
    build=("g++", "-std=c++17", "-O2", "-pipe", "-fmax-errors=3", "-o", "{program}", "{source}"),
    run=("{program}",),
)
