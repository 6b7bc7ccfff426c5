//! The text of the protocol's lines.

use super::*;

/// Foreign workers depend on the exact text of these lines: changing any of them needs a new [`VERSION`].
#[test]
fn the_lines_are_as_documented() {
    let request = |line: &str| serde_json::from_str::<Envelope>(line).unwrap();
    assert!(matches!(
        request(r#"{"id":1,"call":"describe"}"#).request,
        Request::Describe
    ));
    let Request::Load { inputs, copies } =
        request(r#"{"id":2,"call":"load","inputs":["a","b"],"copies":3}"#).request
    else {
        panic!("not a load");
    };
    assert_eq!(
        (inputs, copies),
        (vec![PathBuf::from("a"), PathBuf::from("b")], 3)
    );
    let line = r#"{"id":4,"call":"time","copies":[3,0,1,1],"phases":false}"#;
    assert_eq!(serde_json::to_string(&request(line)).unwrap(), line);

    for line in [
        r#"{"id":5,"call":"step","copies":[3,0]}"#,
        r#"{"id":5,"call":"step","copies":[3],"poison":90}"#,
        r#"{"id":5,"call":"step","copies":[3],"heat":[0.5]}"#,
        r#"{"id":5,"call":"output","path":"result"}"#,
        r#"{"id":5,"call":"output","path":"result","index":2}"#,
        r#"{"id":6,"call":"trace","path":"timeline.json"}"#,
    ] {
        assert_eq!(serde_json::to_string(&request(line)).unwrap(), line);
    }

    let reply = Reply {
        id: 7,
        outcome: Outcome::Failed {
            error: Failure {
                kind: FailureKind::BadRequest,
                message: "no".to_owned(),
            },
        },
    };
    let line = r#"{"id":7,"error":{"kind":"bad-request","message":"no"}}"#;
    assert_eq!(serde_json::to_string(&reply).unwrap(), line);
    let read: Reply = serde_json::from_str(line).unwrap();
    assert!(matches!(read.outcome, Outcome::Failed { .. }));

    let line = r#"{"id":8,"answer":"timed","samples":[{"call":0.5},{"call":0.25,"kernel":0.125}]}"#;
    let read: Reply = serde_json::from_str(line).unwrap();
    let Outcome::Done(Answer::Timed { samples, .. }) = &read.outcome else {
        panic!("not times")
    };
    assert_eq!(
        (samples[1].call, samples[1].kernel, samples[0].kernel),
        (0.25, Some(0.125), None)
    );
    assert_eq!(serde_json::to_string(&read).unwrap(), line);
}

#[test]
fn an_answer_with_a_part_missing_is_no_reply() {
    assert!(serde_json::from_str::<Reply>(r#"{"id":1,"answer":"timed"}"#).is_err());
    assert!(serde_json::from_str::<Reply>(r#"{"answer":"stopped"}"#).is_err());
    assert!(serde_json::from_str::<Reply>("hello").is_err());
}
