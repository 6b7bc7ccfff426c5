//! Places labels beside their points, apart from other points and labels.

/// A place in a chart.
type Place = (f64, f64);

/// The least distance of a label from a point and from another label.
const CLEAR: f64 = 11.0;

/// The distance from the middle of a label's text to its edge.
const TEXT: f64 = 6.5;

/// Distances from the point at which a label is tried, nearest first. If all are taken, as with many points on one
/// spot, the label is put at the last one regardless.
const DISTANCES: [f64; 6] = [12.0, 20.0, 30.0, 42.0, 56.0, 72.0];

/// Directions in which a label is tried, as angles in eighths of a turn: up and right first, level last, because the
/// whiskers of a point are level.
const DIRECTIONS: [f64; 8] = [1.0, 2.0, 3.0, 7.0, 6.0, 5.0, 0.0, 4.0];

/// A place for each point's label, inside the chart's horizontal and vertical range. Points stay where they are.
pub fn beside(points: &[Place], across: (f64, f64), down: (f64, f64)) -> Vec<Place> {
    let inside = |(x, y): Place| (across.0..=across.1).contains(&x) && (down.0..=down.1).contains(&y);
    let mut placed: Vec<Place> = Vec::new();
    for point in points {
        let free = |place: Place| {
            let taken = points.iter().chain(&placed);
            inside(place) && taken.into_iter().all(|other| distance(*other, place) >= CLEAR)
        };
        let place = candidates(*point).find(|place| free(*place));
        placed.push(place.unwrap_or_else(|| shifted(*point, DISTANCES[DISTANCES.len() - 1], DIRECTIONS[0])));
    }
    placed
}

/// Where a line from a point to its label ends: short of the label's text.
pub fn leader(point: Place, label: Place) -> Place {
    let whole = distance(point, label);
    let part = (whole - TEXT).max(0.0) / whole.max(TEXT);
    (
        point.0 + part * (label.0 - point.0),
        point.1 + part * (label.1 - point.1),
    )
}

fn candidates(point: Place) -> impl Iterator<Item = Place> {
    DISTANCES.into_iter().flat_map(move |distance| {
        DIRECTIONS
            .into_iter()
            .map(move |direction| shifted(point, distance, direction))
    })
}

/// The place at a distance from a point; y grows downwards.
fn shifted((x, y): Place, distance: f64, eighths: f64) -> Place {
    let (sine, cosine) = (eighths * std::f64::consts::FRAC_PI_4).sin_cos();
    (x + distance * cosine, y - distance * sine)
}

fn distance(one: Place, other: Place) -> f64 {
    (one.0 - other.0).hypot(one.1 - other.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: (f64, f64) = (0.0, 300.0);

    #[test]
    fn labels_of_points_on_one_spot_are_apart_and_inside() {
        let points = vec![(295.0, 5.0); 12];
        let labels = beside(&points, RANGE, RANGE);
        for (index, label) in labels.iter().enumerate() {
            assert!((0.0..=300.0).contains(&label.0) && (0.0..=300.0).contains(&label.1));
            for other in &labels[..index] {
                assert!(distance(*label, *other) >= CLEAR, "{label:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_lone_label_is_near_its_point() {
        let labels = beside(&[(100.0, 100.0)], RANGE, RANGE);
        assert!((distance(labels[0], (100.0, 100.0)) - DISTANCES[0]).abs() < 1e-9);
    }
}
