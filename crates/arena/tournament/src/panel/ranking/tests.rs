use super::*;
use crate::panel::Origin;
use crate::panel::fixture::{dossier, judge, pitch, scores};
use crate::pitch::{Cost, Pitch};

fn order(judges: &[PanelMember], pitches: &[Pitch]) -> Vec<String> {
    let dossiers: Vec<_> = pitches.iter().map(dossier).collect();
    Panel::new(judges)
        .rank(&dossiers)
        .standings
        .into_iter()
        .map(|standing| standing.pitch)
        .collect()
}

/// The scores that the judge of `examples/shark-tank` gave and printed in round 1.
fn oracle() -> PanelMember {
    judge(
        "Performance Oracle",
        &[
            ("pipeline-stages", scores([8.5, 9.5, 8.0, 8.0], Some(8.4))),
            ("tile-size", scores([9.0, 6.0, 6.0, 8.5], Some(7.6))),
            ("tma-epilogue", scores([6.5, 7.0, 7.0, 7.5], Some(6.9))),
            ("warp-specialisation", scores([6.0, 4.0, 4.0, 7.0], Some(5.6))),
        ],
    )
}

#[test]
fn the_shark_tanks_table_is_recomputed_and_two_of_its_totals_are_flagged() {
    // In reverse order, so that the result must come from the scores.
    let pitches = [
        "warp-specialisation",
        "tma-epilogue",
        "tile-size",
        "pipeline-stages",
    ]
    .map(pitch);
    let dossiers: Vec<_> = pitches.iter().map(dossier).collect();
    let ranking = Panel::new(&[oracle()]).rank(&dossiers);
    let means: Vec<_> = ranking
        .standings
        .iter()
        .map(|standing| (standing.rank, standing.mean))
        .collect();
    for ((rank, mean), (place, expected)) in means.iter().zip([(1, 8.575), (2, 7.575), (3, 6.875), (4, 5.25)])
    {
        assert_eq!(*rank, place);
        assert!((mean - expected).abs() < 1e-9, "{mean} for {expected}");
    }
    assert_eq!(ranking.standings[0].pitch, "pipeline-stages");
    assert_eq!(ranking.standings[0].judgements[0].printed, Some(8.4));
    let flags: Vec<_> = ranking.flags.iter().map(Flag::to_string).collect();
    assert_eq!(
        flags,
        [
            "judge Performance Oracle prints 5.6 for warp-specialisation; the judge's own weights give 5.25",
            "judge Performance Oracle prints 8.4 for pipeline-stages; the judge's own weights give 8.575",
        ]
    );
}

#[test]
fn printed_scores_are_held_to_the_decimals_printed() {
    let flagged = |printed| {
        let exact = judge(
            "exact",
            &[("one", scores([7.04, 7.04, 7.04, 7.04], Some(printed)))],
        );
        let one = pitch("one");
        !Panel::new(&[exact]).rank(&[dossier(&one)]).flags.is_empty()
    };
    // 7.0 and 7.04 are roundings to one and to two decimals.
    assert!(!flagged(7.0) && !flagged(7.04) && flagged(7.05) && flagged(7.1));
    assert!(flagged(6.9) && flagged(8.0));
}

#[test]
fn a_total_that_the_rules_completed_is_not_held_against_the_judge() {
    let mut partial = scores([7.0, 7.0, 7.0, 7.0], Some(1.0));
    partial.quality = None;
    let one = pitch("one");
    let ranking = Panel::new(&[judge("partial", &[("one", partial)])]).rank(&[dossier(&one)]);
    assert!(ranking.flags.is_empty());
    let scores = &ranking.standings[0].judgements[0].scores;
    assert_eq!(
        (scores.speedup.origin, scores.quality.origin),
        (Origin::Given, Origin::Rule)
    );
}

#[test]
fn a_judge_who_finds_the_forbidden_feasible_is_flagged() {
    let tiles = pitch("tile-size");
    let forbidden = Dossier {
        violations: vec!["tile.m = 64: M must be 128".to_owned()],
        ..dossier(&tiles)
    };
    let ranking = Panel::new(&[oracle(), judge("silent", &[])]).rank(&[forbidden]);
    let texts: Vec<_> = ranking.flags.iter().map(Flag::to_string).collect();
    assert_eq!(
        texts,
        ["judge Performance Oracle gives tile-size 6 for feasibility, but tile.m = 64: M must be 128"]
    );
    assert_eq!(ranking.standings[0].judgements[1].scores.feasibility.value, 0.0);
}

#[test]
fn without_judges_the_rules_judge_with_the_usual_weights() {
    let one = pitch("one");
    let ranking = Panel::new(&[]).rank(&[dossier(&one)]);
    let [judgement] = &ranking.standings[0].judgements[..] else {
        panic!("one judge")
    };
    let by_rule = rules::scores(&dossier(&one));
    let expected = 0.40 * by_rule.speedup.value
        + 0.25 * by_rule.feasibility.value
        + 0.20 * by_rule.risk.value
        + 0.15 * by_rule.quality.value;
    assert!((judgement.total - expected).abs() < 1e-12);
    assert_eq!(ranking.standings[0].spread, 0.0);
}

#[test]
fn a_tie_goes_to_the_lower_risk() {
    // 0.20 · 8 + 0.15 · 4 and 0.20 · 5 + 0.15 · 8 are both 2.2: the totals are equal.
    let even = judge(
        "even",
        &[
            ("bold", scores([6.0, 6.0, 5.0, 8.0], None)),
            ("calm", scores([6.0, 6.0, 8.0, 4.0], None)),
        ],
    );
    assert_eq!(order(&[even], &[pitch("bold"), pitch("calm")]), ["calm", "bold"]);
}

#[test]
fn then_to_the_lower_cost() {
    let same = scores([6.0, 6.0, 6.0, 6.0], None);
    let mut costly = pitch("costly");
    costly.cost = Cost { hours: 9.0 };
    let even = judge("even", &[("costly", same), ("cheap", same)]);
    assert_eq!(order(&[even], &[costly, pitch("cheap")]), ["cheap", "costly"]);
}

#[test]
fn then_to_the_closer_agreement_of_the_judges() {
    let given = |speedup| scores([speedup, 6.0, 6.0, 6.0], None);
    let judges = [
        judge("one", &[("disputed", given(9.0)), ("agreed", given(6.1))]),
        judge("two", &[("disputed", given(3.0)), ("agreed", given(5.9))]),
    ];
    assert_eq!(
        order(&judges, &[pitch("disputed"), pitch("agreed")]),
        ["agreed", "disputed"]
    );
}

#[test]
fn and_last_to_the_order_in_the_file() {
    let names = ["third", "first", "second"];
    assert_eq!(order(&[], &names.map(pitch)), names);
}

#[test]
fn what_was_withdrawn_stands_last_whatever_its_scores() {
    let mut withdrawn = pitch("withdrawn");
    withdrawn.withdrawn = Some("it will be slower".to_owned());
    let best = judge("fond", &[("withdrawn", scores([10.0, 10.0, 10.0, 10.0], None))]);
    assert_eq!(
        order(&[best], &[withdrawn, pitch("other")]),
        ["other", "withdrawn"]
    );
}

#[test]
fn a_ranking_goes_into_the_ledger_and_comes_back() {
    let pitches = ["pipeline-stages", "tile-size"].map(pitch);
    let dossiers: Vec<_> = pitches.iter().map(dossier).collect();
    let ranking = Panel::new(&[oracle()]).rank(&dossiers);
    let text = serde_json::to_string(&ranking).unwrap();
    assert_eq!(serde_json::from_str::<Ranking>(&text).unwrap(), ranking);
    assert!(text.contains(r#""flag":"arithmetic""#), "{text}");
}
