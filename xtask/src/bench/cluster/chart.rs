//! Draws CPU and peak memory against the number of nodes, as an SVG.
//!
//! Both axes are linear from zero, so that a cost that is proportional to the size is a straight line through the
//! corner. The measured server's points are connected; a hollow point is a size that it does not carry.

use std::fmt::Write as _;

use super::outcome::Outcome;

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 380.0;
/// The plot area of a panel.
const PLOT_WIDTH: f64 = 320.0;
const PLOT_HEIGHT: f64 = 230.0;
const PLOT_TOP: f64 = 90.0;
const PLOT_LEFTS: [f64; 2] = [66.0, 476.0];
/// The greatest number of intervals between the ticks of an axis.
const INTERVALS: f64 = 5.0;
const TEXT: &str = "#374151";
const GRID: &str = "#e5e7eb";
/// The colors of the servers, in their order.
const COLORS: [&str; 2] = ["#1d6fb8", "#c2571a"];

/// One of the two drawings.
struct Panel {
    title: &'static str,
    unit: &'static str,
    value: fn(&Outcome) -> f64,
}

const PANELS: [Panel; 2] = [
    Panel { title: "CPU of the server", unit: "cores", value: Outcome::cores },
    Panel { title: "Peak memory of the server", unit: "MB", value: Outcome::peak_mb },
];

/// An axis from zero.
struct Axis {
    step: f64,
    intervals: u32,
    /// The number of pixels of the whole axis.
    pixels: f64,
}

/// The outcomes of one server, by size.
struct Series<'a> {
    name: String,
    color: &'static str,
    outcomes: Vec<&'a Outcome>,
}

pub(super) fn draw(outcomes: &[Outcome]) -> String {
    let series = series_of(outcomes);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"{TEXT}\">\n\
         <title>CPU and peak memory against the number of nodes</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
    );
    draw_legend(&mut svg, &series);
    let nodes = Axis::up_to(greatest(outcomes, |outcome| outcome.nodes() as f64), PLOT_WIDTH);
    for (panel, left) in PANELS.iter().zip(PLOT_LEFTS) {
        let values = Axis::up_to(greatest(outcomes, panel.value), PLOT_HEIGHT);
        draw_axes(&mut svg, panel, left, &nodes, &values);
        for series in &series {
            series.draw(&mut svg, panel, left, &nodes, &values);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The series in the order of their first outcomes.
fn series_of(outcomes: &[Outcome]) -> Vec<Series<'_>> {
    let mut all: Vec<Series<'_>> = Vec::new();
    for outcome in outcomes {
        // Clusters of different churn are not of one curve.
        let name = format!("{}, {} pods/s", outcome.server(), outcome.churn());
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.outcomes.push(outcome),
            None => {
                let color = COLORS.iter().cycle().nth(all.len()).copied().unwrap_or(TEXT);
                all.push(Series { name, color, outcomes: vec![outcome] });
            }
        }
    }
    for series in &mut all {
        series.outcomes.sort_by_key(|outcome| outcome.nodes());
    }
    all
}

fn greatest(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(value).fold(0.0, f64::max)
}

impl Axis {
    /// An axis with round steps that ends at `greatest` or above.
    fn up_to(greatest: f64, pixels: f64) -> Axis {
        let least_step = if greatest > 0.0 { greatest / INTERVALS } else { 1.0 / INTERVALS };
        let power = 10_f64.powf(least_step.log10().floor());
        let rounded = [1.0, 2.0, 4.0, 5.0, 10.0].into_iter().map(|digit| digit * power);
        // The quotient of equal numbers may be a little more than one.
        let step = rounded.into_iter().find(|step| least_step / step < 1.0 + 1e-9).unwrap_or(10.0 * power);
        let intervals = (greatest / step - 1e-9).ceil().max(1.0) as u32;
        Axis { step, intervals, pixels }
    }

    fn end(&self) -> f64 {
        self.step * f64::from(self.intervals)
    }

    /// The distance of a value from the axis' beginning.
    fn pixels(&self, value: f64) -> f64 {
        value / self.end() * self.pixels
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let step = self.step;
        (0..=self.intervals).map(move |tick| f64::from(tick) * step)
    }

    /// A value of the axis, with the decimals of its step.
    fn label(&self, value: f64) -> String {
        let decimals = (-self.step.log10().floor()).max(0.0) as usize;
        grouped(&format!("{value:.decimals$}"))
    }
}

/// A number with commas between its thousands.
fn grouped(number: &str) -> String {
    let (whole, decimals) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + decimals
}

fn draw_legend(svg: &mut String, series: &[Series<'_>]) {
    for (row, Series { name, color, outcomes }) in series.iter().enumerate() {
        let (x, y) = (PLOT_LEFTS.first().copied().unwrap_or_default(), 22.0 + 18.0 * row as f64);
        let line = if outcomes.len() > 1 { x + 24.0 } else { x };
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"{y}\" x2=\"{line}\" y2=\"{y}\" stroke=\"{color}\" stroke-width=\"2\"/>\
             <circle cx=\"{}\" cy=\"{y}\" r=\"4\" fill=\"{color}\"/>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            x + 12.0,
            x + 32.0,
            y + 4.0,
            escaped(name),
        );
    }
    let is_hollow = series.iter().flat_map(|series| &series.outcomes).any(|outcome| !outcome.is_carried());
    if is_hollow {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"26\" text-anchor=\"end\">hollow: not carried</text>",
            WIDTH - 24.0
        );
    }
}

fn draw_axes(svg: &mut String, panel: &Panel, left: f64, nodes: &Axis, values: &Axis) {
    let bottom = PLOT_TOP + PLOT_HEIGHT;
    let (right, middle) = (left + PLOT_WIDTH, left + PLOT_WIDTH / 2.0);
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{}\" font-weight=\"600\">{} ({})</text>",
        PLOT_TOP - 14.0,
        panel.title,
        panel.unit
    );
    for tick in values.ticks() {
        let y = bottom - values.pixels(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"{GRID}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            y + 4.0,
            values.label(tick)
        );
    }
    for tick in nodes.ticks() {
        let x = left + nodes.pixels(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"{TEXT}\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 4.0,
            bottom + 18.0,
            nodes.label(tick)
        );
    }
    let _ = writeln!(
        svg,
        "<line x1=\"{left}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\" stroke=\"{TEXT}\"/>\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">nodes</text>",
        bottom + 38.0
    );
}

impl Series<'_> {
    fn draw(&self, svg: &mut String, panel: &Panel, left: f64, nodes: &Axis, values: &Axis) {
        let at = |outcome: &Outcome| {
            let x = left + nodes.pixels(outcome.nodes() as f64);
            (x, PLOT_TOP + PLOT_HEIGHT - values.pixels((panel.value)(outcome)))
        };
        if self.outcomes.len() > 1 {
            let points: Vec<String> = self
                .outcomes
                .iter()
                .map(|outcome| at(outcome))
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
                points.join(" "),
                self.color
            );
        }
        for outcome in &self.outcomes {
            let (x, y) = at(outcome);
            let fill = if outcome.is_carried() { self.color } else { "#ffffff" };
            let value = (panel.value)(outcome);
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{fill}\" stroke=\"{}\" stroke-width=\"2\">\
                 <title>{}: {} nodes, {value:.3} {}</title></circle>",
                self.color,
                escaped(&self.name),
                grouped(&outcome.nodes().to_string()),
                panel.unit
            );
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{self, tests::line};
    use super::*;
    use serde_json::json;

    fn outcomes() -> Vec<Outcome> {
        let mut late = line(1000, 3.75, 960);
        late["api_p99_ms"] = json!(5000);
        let ours = format!("{late}\n{}", line(200, 0.75, 160));
        let mut all = outcome::all("A<B", &ours).unwrap();
        all.extend(outcome::all("other", &line(200, 1.75, 1000).to_string()).unwrap());
        all
    }

    #[test]
    fn axes_end_above_the_greatest_value_in_round_steps() {
        for (greatest, step, end, label) in [
            (5000.0, 1000.0, 5000.0, "5,000"),
            (5001.0, 2000.0, 6000.0, "6,000"),
            (0.67, 0.2, 0.8, "0.8"),
            (0.05, 0.01, 0.05, "0.05"),
            (1210.0, 400.0, 1600.0, "1,600"),
            (100_000.0, 20_000.0, 100_000.0, "100,000"),
            (0.0, 0.2, 0.2, "0.2"),
        ] {
            let axis = Axis::up_to(greatest, 100.0);
            assert!((axis.step / step - 1.0).abs() < 1e-9, "{greatest}: {}", axis.step);
            assert!((axis.end() / end - 1.0).abs() < 1e-9, "{greatest}: {}", axis.end());
            assert_eq!(axis.label(axis.end()), label);
            assert_eq!(axis.ticks().count(), axis.intervals as usize + 1);
        }
    }

    #[test]
    fn numbers_have_commas_between_thousands() {
        for (number, text) in [("0", "0"), ("999", "999"), ("1000", "1,000"), ("1234567.25", "1,234,567.25")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn points_are_at_their_sizes_and_values() {
        let svg = draw(&outcomes());
        // The axes end at 1,000 nodes, 4 cores and 1,200 MB; the line joins the sizes in their order.
        let (left, right) = (PLOT_LEFTS[0], PLOT_LEFTS[1]);
        let bottom = PLOT_TOP + PLOT_HEIGHT;
        let lines = [(left, 1.0 / 4.0, 4.0 / 4.0), (right, 200.0 / 1200.0, 1000.0 / 1200.0)];
        for (left, first, second) in lines {
            let points = format!(
                "<polyline points=\"{:.1},{:.1} {:.1},{:.1}\"",
                left + 0.2 * PLOT_WIDTH,
                bottom - first * PLOT_HEIGHT,
                left + PLOT_WIDTH,
                bottom - second * PLOT_HEIGHT,
            );
            assert!(svg.contains(&points), "{points} is not in {svg}");
        }
        assert_eq!(svg.matches("<polyline").count(), 2, "a single point has no line");
        let hollow = svg.matches("fill=\"#ffffff\" stroke=\"#1d6fb8\"").count();
        assert_eq!((hollow, svg.matches("<circle cx").count()), (2, 2 + 2 * 3));
        assert!(svg.contains("hollow: not carried"));
        assert!(svg.contains("A&lt;B, 10 pods/s: 1,000 nodes, 4.000 cores"));
        assert!(svg.contains("other, 10 pods/s: 200 nodes, 1040.000 MB"));
    }

    #[test]
    fn elements_are_closed() {
        let svg = draw(&outcomes());
        let mut open = Vec::new();
        for tag in svg.split('<').skip(1).map(|rest| rest.split_once('>').unwrap().0) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn clusters_of_different_churn_are_different_series() {
        let mut busy = line(400, 1.0, 100);
        busy["churn"] = json!(50.0);
        let mut all = outcomes();
        all.extend(outcome::all("A<B", &busy.to_string()).unwrap());
        let names: Vec<_> = series_of(&all).into_iter().map(|series| series.name).collect();
        assert_eq!(names, ["A<B, 10 pods/s", "other, 10 pods/s", "A<B, 50 pods/s"]);
    }
}
