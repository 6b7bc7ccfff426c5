//! What workers cannot do where this system can confine them, and what they still can do.

#![cfg(target_os = "linux")]

mod common;

use std::fs;

use common::{DESCRIPTION, eventually, has, said, start};
use gauntlet_worker::{
    Artefacts, Culprits, Limits, Measure, Timeouts, WorkerCommand, WorkerProcess, culprits,
};
use nix::sys::signal::killpg;
use nix::unistd::Pid;

#[test]
fn it_works_in_its_own_folder_which_goes_with_it() {
    let worker = start(&format!(
        "read line; mkdir deep; ls / /dev > deep/$$ 2>/dev/null; cp deep/$$ \"$TMPDIR/copy\"; mv copy deep/moved
         (cat deep/moved | wc -c) > count; echo '{DESCRIPTION}'; read line"
    ))
    .unwrap();
    let folder = worker.folder().to_owned();
    let count = fs::read_to_string(folder.join("count")).unwrap();
    assert!(count.trim().parse::<usize>().unwrap() > 10, "{count}");
    drop(worker);
    assert!(!folder.exists());
}

#[test]
fn it_writes_nowhere_else() {
    if !has("writes only in its own folder") {
        return;
    }
    let outside = common::workers_folder().join(format!("outside-{}", std::process::id()));
    fs::write(&outside, "before").unwrap();
    let place = outside.display();
    let told = said(&format!(
        "echo after > '{place}'; rm -f '{place}'; echo x > '{place}.new'; mkdir '{place}.d'; ln -s x ../link; echo end"
    ));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "before", "{told}");
    fs::remove_file(&outside).unwrap();
    for trace in [".new", ".d"] {
        let mut name = outside.clone().into_os_string();
        name.push(trace);
        assert!(!fs::exists(name).unwrap());
    }
    assert!(!common::workers_folder().join("link").exists());
    assert!(told.ends_with("end\n"), "{told}");
}

/// CUDA writes such an entry when it starts, possibly in a child of the worker.
#[test]
fn it_writes_the_entries_of_its_processes_but_no_settings() {
    if !has("no settings of the system in /proc") || !has("writes only in its own folder") {
        return;
    }
    let told = said(
        "echo named > /proc/self/comm || echo refused
         sh -c 'echo named > /proc/$$/task/$$/comm || echo refused'; echo now
         limit=$(cat /proc/sys/kernel/threads-max); echo $limit > /proc/sys/kernel/threads-max && echo changed
         (: >> /proc/sysrq-trigger) && echo opened",
    );
    let (own, settings) = told.split_once("now\n").unwrap();
    assert_eq!(own, "");
    assert!(
        !settings.contains("changed") && !settings.contains("opened"),
        "{settings}"
    );
}

#[test]
fn it_reads_no_other_workers_files_nor_the_memory_of_others() {
    if !has("other workers' files and all others' memory hidden") {
        return;
    }
    let other = start(&format!(
        "read line; echo secret > result; echo '{DESCRIPTION}'; read line"
    ))
    .unwrap();
    let result = other.folder().join("result");
    assert_eq!(fs::read_to_string(&result).unwrap(), "secret\n");
    let told = said(&format!(
        "cat '{}'; cat /proc/{other}/cwd/result; for file in mem environ maps; do
           for process in {coordinator} {other}; do (: < /proc/$process/$file) && echo read $process $file; done
         done; (: < /proc/self/environ) && echo end",
        result.display(),
        other = other.id(),
        coordinator = std::process::id(),
    ));
    assert!(!told.contains("secret") && !told.contains("read "), "{told}");
    assert!(told.ends_with("end\n"), "{told}");
}

#[test]
fn it_signals_nobody_but_its_own() {
    if !has("signals only to itself") {
        return;
    }
    let other = start(&format!("read line; echo '{DESCRIPTION}'; read line")).unwrap();
    let told = said(&format!(
        "for process in {} {}; do kill -0 $process && echo reached; done
         sleep 60 & kill -9 $! && echo end",
        std::process::id(),
        other.id()
    ));
    assert!(!told.contains("reached") && told.ends_with("end\n"), "{told}");
}

#[test]
fn it_has_no_privileges_and_gains_none() {
    let told = said("cat /proc/self/status");
    let field = |name: &str| {
        let line = told.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit('\t').next().unwrap().to_owned()
    };
    assert_eq!(field("NoNewPrivs:"), "1");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        let held = u64::from_str_radix(&field(set), 16).unwrap();
        // The two capabilities for reading and writing files, see capability.h.
        assert_eq!(held & !0b110, 0, "{set} {held:x}");
    }
}

#[test]
fn it_cannot_raise_its_limits_nor_dump_core() {
    let told = said("ulimit -c; ulimit -c unlimited || ulimit -c 1 || echo kept; ulimit -n");
    assert!(told.starts_with("0\n") && told.contains("kept\n"), "{told}");
    let files: u64 = told.lines().last().unwrap().parse().unwrap();
    assert!(files <= 4096, "{told}");
}

#[test]
fn nothing_of_it_lives_on() {
    let script = format!(
        "read line; sleep 300 & (sleep 300 & sleep 300 &) ; (trap '' TERM HUP; sleep 300) &
         echo '{DESCRIPTION}'; read line"
    );
    let mut worker = start(&script).unwrap();
    assert!(eventually(|| worker.census().unwrap().processes >= 5));
    let group = Pid::from_raw(i32::try_from(worker.id()).unwrap());
    assert!(killpg(group, None).is_ok());
    drop(worker);
    // Not even as a zombie.
    assert_eq!(killpg(group, None), Err(nix::errno::Errno::ESRCH));
}

#[test]
fn nothing_of_it_leaves_its_group() {
    if !has("stays in its process group, and leaves others' urgency alone") {
        return;
    }
    let script = format!(
        "read line; setsid sleep 300 & set -m; sleep 300 & set +m; sleep 0.2; echo '{DESCRIPTION}'; read line"
    );
    let mut worker = start(&script).unwrap();
    // All processes run in the group: the census does not count other groups.
    let strays = || {
        let listed = fs::read_dir("/proc").unwrap().flatten();
        listed
            .filter_map(|entry| {
                let line = fs::read_to_string(entry.path().join("stat")).ok()?;
                let state: Vec<_> = line.rsplit_once(')')?.1.split_whitespace().collect();
                let of_it = fs::read_link(entry.path().join("cwd")).ok()? == worker.folder();
                (of_it && state[2].parse() != Ok(worker.id())).then_some(line)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(strays(), Vec::<String>::new());
    assert!(worker.census().unwrap().processes >= 1);
}

#[test]
fn a_folder_that_it_was_given_is_kept_from_one_process_to_the_next() {
    let place = tempfile::tempdir().unwrap();
    let kept = place.path().join("kept");
    fs::create_dir(&kept).unwrap();
    let given = |script: String| {
        let mut command = common::shell(&script);
        command.allowances.folders.push(kept.clone());
        let started = WorkerProcess::start(&command, common::workers_folder(), Timeouts::default());
        started.map(|_| ())
    };
    let file = kept.join("file");
    given(format!(
        "read line; echo compiled > '{}' && echo '{DESCRIPTION}'; read line",
        file.display()
    ))
    .unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "compiled\n");
    given(format!(
        "read line; grep -q compiled '{}' && echo '{DESCRIPTION}'; read line",
        file.display()
    ))
    .unwrap();
}

#[test]
fn what_runs_it_is_started_in_its_place_and_may_use_the_network() {
    let inner = common::shell(&format!(
        "read line; python3 -c 'import socket; socket.socket()' 2> refused; echo \"$HOME\" > home
         echo '{DESCRIPTION}'; read line; sleep 0.2; echo done > done"
    ));
    let refused = |command: &WorkerCommand| {
        let (worker, _) =
            WorkerProcess::start(command, common::workers_folder(), Timeouts::default()).unwrap();
        let said = |name: &str| fs::read_to_string(worker.folder().join(name)).unwrap();
        (
            said("refused"),
            said("home").trim() == worker.folder().to_str().unwrap(),
        )
    };
    let run = inner.under("/usr/bin/env", ["IN=tool".into()]);
    assert_eq!(run.arguments[..2], ["IN=tool", "/bin/sh"]);
    assert_eq!(refused(&run), (String::new(), true));
    if has("no network") {
        let (said, home) = refused(&inner);
        assert!(
            said.contains("not permitted") || said.contains("not found"),
            "{said}"
        );
        assert!(!home);
    }
}

#[test]
fn it_may_write_to_the_end_when_it_is_told_to_stop() {
    let script = format!(
        "read line; echo '{DESCRIPTION}'; read line; echo '{}'; exec >&-; sleep 0.2; echo end > end",
        r#"{"id":2,"answer":"stopped"}"#
    );
    let mut worker = start(&script).unwrap();
    worker.stop().unwrap();
    assert_eq!(fs::read_to_string(worker.folder().join("end")).unwrap(), "end\n");
}

#[test]
fn what_stops_it_is_found_by_leaving_it_out() {
    if !has("writes only in its own folder") {
        return;
    }
    // Landlock alone hides it.
    let outside = common::workers_folder().join(format!("culprit-{}", std::process::id()));
    fs::write(&outside, "text").unwrap();
    let of = |script: String| {
        culprits(
            &common::shell(&script),
            common::workers_folder(),
            Timeouts::default(),
            Limits::default(),
        )
    };
    let script = format!(
        "read line; cat '{}' > seen || exit 3; echo '{DESCRIPTION}'; read line",
        outside.display()
    );
    assert_eq!(of(script), Culprits::Any(vec![Measure::Files]));
    fs::remove_file(&outside).unwrap();
    assert_eq!(of("exit 3".to_owned()), Culprits::None);
}

#[test]
fn artefacts_are_written_by_the_build_and_only_read_afterwards() {
    if !has("writes only in its own folder") {
        return;
    }
    let hidden = tempfile::tempdir_in(common::workers_folder()).unwrap();
    let building = Artefacts::prepare(hidden.path()).unwrap();
    let run = |artefacts: Option<&Artefacts>, script: &str| {
        let script = format!("read line; {{ {script}\n}} >said 2>&1; echo '{DESCRIPTION}'; read line");
        let command = WorkerCommand {
            artefacts: artefacts.cloned(),
            ..common::shell(&script)
        };
        let (worker, _) =
            WorkerProcess::start(&command, common::workers_folder(), Timeouts::default()).unwrap();
        fs::read_to_string(worker.folder().join("said")).unwrap()
    };
    let told = run(
        Some(&building),
        "for folder in \"$TRITON_CACHE_DIR\" \"$TORCHINDUCTOR_CACHE_DIR\" \"$CUDA_CACHE_PATH\" \"$NUMBA_CACHE_DIR\" \\
           \"$CUPY_CACHE_DIR\" \"$XDG_CACHE_HOME\"; do [ \"${folder%/*}\" = \"$GAUNTLET_ARTEFACTS\" ] && echo compiled > \"$folder/kernel\"; done",
    );
    assert_eq!(told, "");
    assert!(building.hold_files());
    let kernel = hidden.path().join("triton/kernel");
    assert_eq!(fs::read_to_string(&kernel).unwrap(), "compiled\n");

    let told = run(
        Some(&building.sealed()),
        "cat \"$TRITON_CACHE_DIR/kernel\"; cd \"$TRITON_CACHE_DIR\"
         (echo changed > kernel); (echo more >> kernel); rm -f kernel; mv kernel other; mkdir new; ln kernel link
         chmod 777 kernel .; (: > ../numba/new); truncate -s 0 kernel; echo end",
    );
    assert!(
        told.starts_with("compiled\n") && told.ends_with("end\n"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(&kernel).unwrap(), "compiled\n", "{told}");
    assert_eq!(
        fs::read_dir(hidden.path().join("triton")).unwrap().count(),
        1,
        "{told}"
    );
    assert_eq!(
        fs::read_dir(hidden.path().join("numba")).unwrap().count(),
        1,
        "{told}"
    );

    // Other workers do not even read them.
    let told = run(
        None,
        &format!(
            "cat '{}' && echo read; echo \"$TRITON_CACHE_DIR\"; pwd",
            kernel.display()
        ),
    );
    assert!(!told.contains("read\n") && !told.contains("compiled"), "{told}");
    let lines: Vec<&str> = told.lines().rev().take(2).collect();
    assert_eq!(lines[0], lines[1], "{told}");
}

#[test]
fn it_gets_no_variable_that_it_does_not_need() {
    // Variables of the test's own process: nothing may be set here, since other tests read the environment.
    let told = said("env");
    let names: Vec<_> = told
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"PATH") && names.contains(&"TMPDIR"), "{told}");
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        "cargo sets it for tests"
    );
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{told}");
}
