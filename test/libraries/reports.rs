//! Decodes the signed price reports of a file, one in hexadecimal digits per line, and prints the fields of each.
use chainlink_data_streams_report::report::{
    decode_full_report, v10::ReportDataV10, v11::ReportDataV11, v8::ReportDataV8,
};

macro_rules! fields {
    ($report:expr, $($name:ident),*) => {{
        let report = $report;
        let common = [
            report.feed_id.to_hex_string(),
            report.valid_from_timestamp.to_string(),
            report.observations_timestamp.to_string(),
            report.native_fee.to_string(),
            report.link_fee.to_string(),
            report.expires_at.to_string(),
        ];
        [common.to_vec(), vec![$(report.$name.to_string()),*]].concat().join(" ")
    }};
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).expect("file");
    for line in std::fs::read_to_string(file)?.lines() {
        let (_, report) = decode_full_report(&hex::decode(line)?)?;
        let text = match report[1] {
            8 => fields!(ReportDataV8::decode(&report)?, last_update_timestamp, mid_price, market_status),
            10 => fields!(
                ReportDataV10::decode(&report)?,
                last_update_timestamp, price, market_status, current_multiplier, new_multiplier, activation_date_time,
                tokenized_price
            ),
            _ => fields!(
                ReportDataV11::decode(&report)?,
                mid, last_seen_timestamp_ns, bid, bid_volume, ask, ask_volume, last_traded_price, market_status
            ),
        };
        println!("{text}");
    }
    Ok(())
}
