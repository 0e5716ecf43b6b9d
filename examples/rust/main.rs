//! An agent on the plain HTTP API, signing with alloy: it buys and sells again, and prints both receipts.
//!
//!     BASE=http://127.0.0.1:8787 AGENT_KEY=0x… [ATS_AGENT=7] cargo run
//!
//! Without ATS_AGENT it registers, where no fee is due. `npm run clients -- rust` runs it against `npm run dev`.

use std::{
    env,
    error::Error,
    thread::sleep,
    time::{Duration, Instant},
};

use alloy_dyn_abi::TypedData;
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Agent {
    http: ureq::Agent,
    base: String,
    signer: PrivateKeySigner,
}

impl Agent {
    /// Returns the JSON of a request. A body is executed at most once, so it is posted until its outcome is known.
    fn call(&self, path: &str, query: &[(&str, &str)], body: Option<&Value>) -> Result<Value> {
        let url = format!("{}{path}", self.base);
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let sent = match body {
                Some(body) => self.http.post(&url).send_json(body),
                None => self.http.get(&url).query_pairs(query.iter().copied()).call(),
            };
            let (is_ok, answer) = match sent.and_then(|mut response| {
                let is_ok = response.status().is_success();
                Ok((is_ok, response.body_mut().read_json::<Value>()?))
            }) {
                Ok(answered) => answered,
                Err(cause) => (false, json!({"code": "NETWORK_ERROR", "error": cause.to_string(), "retryable": true})),
            };
            if is_ok {
                return Ok(answer);
            }
            if answer["retryable"] != true || Instant::now() > until {
                return Err(format!("{}: {} {}", answer["code"], answer["error"], answer["remedy"]).into());
            }
            sleep(Duration::from_secs_f64(answer["retryAfterSeconds"].as_f64().unwrap_or(1.0)));
        }
    }

    fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        self.call(path, query, None)
    }

    /// Compares a quote with what was asked for, signs its typed data, and posts its body.
    fn sign_and_post(&self, path: &str, quote: &Value, asked: &[(&str, &str)]) -> Result<Value> {
        for check in quote["checks"].as_array().unwrap_or(&vec![]) {
            if check["pass"] != true {
                return Err(format!("The quote fails {}.", check["rule"]).into());
            }
        }
        for (field, value) in asked {
            let given = text(&quote["typedData"]["message"][field]);
            if !given.eq_ignore_ascii_case(value) {
                return Err(format!("The quote has another {field}: {given}").into());
            }
        }
        let typed_data: TypedData = serde_json::from_value(quote["typedData"].clone())?;
        let signature = self.signer.sign_hash_sync(&typed_data.eip712_signing_hash()?)?;
        let mut body = quote["body"].clone();
        body["signature"] = json!(format!("0x{}", alloy_primitives::hex::encode(signature.as_bytes())));
        self.call(path, &[], Some(&body))
    }

    fn register(&self) -> Result<String> {
        let signer = self.signer.address().to_string();
        let vault = text(&self.get("/vaults/genesis", &[])?["vault"]["contractAddress"]);
        let asked = [("signer", &*signer), ("vault", &*vault), ("name", "rust"), ("metadataURI", "data:,")];
        let quote = self.get("/agents/register/quote", &asked)?;
        if quote["x402"]["enabled"] == true {
            return Err("The registration has a fee: register with `ats register`, then pass ATS_AGENT.".into());
        }
        Ok(text(&self.sign_and_post("/agents/register", &quote, &asked)?["agentId"]))
    }
}

fn main() -> Result<()> {
    let agent = Agent {
        http: ureq::Agent::config_builder().http_status_as_error(false).build().into(),
        base: env::var("BASE").unwrap_or("http://127.0.0.1:8787".into()),
        signer: env::var("AGENT_KEY")?.parse()?,
    };
    let id = env::var("ATS_AGENT").or_else(|_| agent.register())?;
    let token = text(&agent.get("/prices", &[("symbols", "NVDA")])?["prices"]["NVDA"]["address"]);

    let path = format!("/agents/{id}/trade-intents");
    let trade = [("symbol", "NVDA"), ("usdcAmount", "100"), ("exits", "-800:10000,1500:10000")];
    let quote = agent.get(&format!("{path}/quote"), &trade)?;
    let asked = [("agentId", &*id), ("token", &*token), ("usdcAmount", "100000000")];
    let opened = agent.sign_and_post(&path, &quote, &asked)?;
    let position = text(&opened["positionId"]);
    println!("opened position {position} in {}", text(&opened["transactionHash"]));

    let path = format!("/agents/{id}/reduce-intents");
    let sale = [("positionId", &*position), ("exitBps", "10000")];
    let closed = agent.sign_and_post(&path, &agent.get(&format!("{path}/quote"), &sale)?, &sale)?;
    println!("{closed}");
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}
