use super::*;

fn read(text: &str) -> KernelText {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    let error = text.parse::<KernelText>().unwrap_err();
    format!("{error}; {}", error.remedy())
}

#[test]
fn texts_name_files_and_functions() {
    let file = |text: &str| match read(text).form {
        KernelForm::File(kernel) => (
            kernel.kind,
            kernel.file.display().to_string(),
            kernel.function,
            kernel.parameters.to_string(),
        ),
        other => panic!("{text}: {other:?}"),
    };
    for (text, kind, name, function, parameters) in [
        ("a/b.py:fast", FileKind::Python, "a/b.py", "fast", ""),
        (" b.py ", FileKind::Python, "b.py", "", ""),
        ("lib.so:f", FileKind::Library, "lib.so", "f", ""),
        (
            "./libsoftmax.so.1:softmax",
            FileKind::Library,
            "./libsoftmax.so.1",
            "softmax",
            "",
        ),
        ("lib.so.1.2:f", FileKind::Library, "lib.so.1.2", "f", ""),
        ("C:/x.dylib:f", FileKind::Library, "C:/x.dylib", "f", ""),
        ("a:b/k.py:f", FileKind::Python, "a:b/k.py", "f", ""),
        ("x.cu:ns::warp", FileKind::Cuda, "x.cu", "ns::warp", ""),
        ("s.cu:k: ROWS=4, T=2", FileKind::Cuda, "s.cu", "k", "ROWS=4, T=2"),
        ("s.cpp:f: ROWS=4", FileKind::C, "s.cpp", "f", "ROWS=4"),
        ("k.py:f: BLOCK=4", FileKind::Python, "k.py", "f", "BLOCK=4"),
        (
            "s.cu:ns::k: PATH=a/b",
            FileKind::Cuda,
            "s.cu",
            "ns::k",
            "PATH=a/b",
        ),
    ] {
        let found = (kind, name.to_owned(), function.to_owned(), parameters.to_owned());
        assert_eq!(file(text), found, "{text}");
    }
}

#[test]
fn other_texts_are_modules_workers_tables_and_parameters() {
    let module = |module: &str, function: &str| KernelForm::Module {
        module: module.to_owned(),
        function: function.to_owned(),
    };
    let command = |words: &[&str]| KernelForm::Command(words.iter().map(|word| (*word).to_owned()).collect());
    let parameters = |text| KernelForm::Parameters(Parameters::parse(text).unwrap());
    for (text, form) in [
        ("builtin", KernelForm::BuiltIn),
        ("baseline", KernelForm::BuiltIn),
        ("kernels.softmax:fast", module("kernels.softmax", "fast")),
        ("kernels:Fused.forward", module("kernels", "Fused.forward")),
        (
            "command: python3 'my worker.py' -v",
            command(&["python3", "my worker.py", "-v"]),
        ),
        ("command: ./x.so:f", command(&["./x.so:f"])),
        ("dispatch:table.py", KernelForm::Dispatch("table.py".into())),
        ("solution.json", KernelForm::Solution("solution.json".into())),
        ("tuned.toml", KernelForm::ParameterFile("tuned.toml".into())),
        ("stages=2", parameters("stages=2")),
        (
            "tile=64x64x256, order=dynamic",
            parameters("tile=64x64x256, order=dynamic"),
        ),
        ("library=x.so", parameters("library=x.so")),
    ] {
        assert_eq!(*read(text).form(), form, "{text}");
        assert_eq!(read(text).to_string(), text);
    }
}

#[test]
fn files_that_are_no_kernels_are_refused_with_what_to_name() {
    for (text, said) in [
        ("foo.rs:f", "foo.rs is no kernel; compile it to a shared library"),
        (
            "src/foo.c",
            "`src/foo.c` names no function; write src/foo.c:FUNCTION",
        ),
        (
            "softmax.cuh:k",
            "softmax.cuh is no kernel; a header is compiled with the file that includes it",
        ),
        ("foo.o:f", "foo.o is no kernel; compile it to a shared library"),
        (
            "kernels.ptx:k",
            "kernels.ptx is no kernel; name its source as FILE.cu:KERNEL",
        ),
        (
            "dir/kernels.pyy:fast",
            "dir/kernels.pyy is no kernel; write a kernel as FILE.py:FUNCTION",
        ),
        ("./libx.so.bak:f", "./libx.so.bak is no kernel; "),
        ("x.cu", "`x.cu` names no function; write x.cu:FUNCTION"),
        ("x.so:", "`x.so` names no function"),
        ("x.cu:a b", "`x.cu` names no function"),
        ("x.so:f: N=4", "`x.so:f` takes no parameters, but `N=4` is given"),
        ("x.cu:k: ROWS", "`ROWS` is not a set of parameters: "),
        ("command: 'open", "` 'open` is not a program with arguments"),
        (
            "stages",
            "`stages` is not a set of parameters: it names no parameter with a value",
        ),
    ] {
        let found = refused(text);
        assert!(found.starts_with(said), "{text}: {found}");
    }
}

#[test]
fn a_misspelt_ending_is_corrected_by_what_lies_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| format!("{}/{name}", folder.path().display());
    for name in ["kernels.py", "notes.txt", "unrelated.py"] {
        std::fs::write(path(name), "").unwrap();
    }
    let found = refused(&path("kernels.pyy:fast"));
    assert!(found.ends_with("; did you mean `kernels.py`?"), "{found}");
    let found = refused(&path("notes.txt:fast"));
    assert!(
        found.starts_with(&format!("{} is no kernel", path("notes.txt"))),
        "{found}"
    );
    assert!(!found.contains("did you mean"), "{found}");
}

#[test]
fn files_of_kernels_are_known() {
    let of = |text| -> Vec<String> {
        let files = read(text).files();
        files.iter().map(|file| file.display().to_string()).collect()
    };
    for (text, named) in [
        ("a/b.py:fast", "a/b.py"),
        ("kernels.softmax:fast", "kernels/softmax.py"),
        ("s.cu:k: ROWS=4", "s.cu"),
        ("dispatch:table.toml", "table.toml"),
        ("tuned.toml", "tuned.toml"),
        ("solution.json", "solution.json"),
    ] {
        assert_eq!(of(text), [named]);
    }
    assert_eq!(
        of("command: python3 'my worker.py' -v"),
        ["python3", "my worker.py", "-v"]
    );
}

#[test]
fn kernels_are_called_by_what_tells_them_apart() {
    let names = |one, other| KernelText::short_names([&read(one), &read(other)]);
    assert_eq!(names("s.py:slow", "s.py:fast"), ["slow", "fast"]);
    assert_eq!(names("a.py:f", "b.py:f"), ["a.py:f", "b.py:f"]);
    assert_eq!(names("builtin", "s.py:f"), ["builtin", "s.py:f"]);
    assert_eq!(names("builtin", "builtin"), ["the baseline", "the candidate"]);
}
