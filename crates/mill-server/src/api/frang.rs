//! Limits of clients: how many are known, and the addresses that are blocked. NGINX Plus has nothing like it.

use super::Clock;
use super::error::ApiError;
use crate::frang::Frang;
use crate::request::Request;
use mill_config::config::frang::BlockTime;
use mill_runtime::time::Instant;
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::sync::Arc;

/// Counts of clients and of blocks.
pub(super) fn figures(request: &Request, clock: &Clock) -> Result<Value, ApiError> {
    let frang = of(request)?;
    let (known, evicted) = frang.client_counts();
    let (added, blocks_evicted) = frang.blocks.counts();
    let active = frang.blocks.all(clock.now).len();
    Ok(json!({
        "clients": { "known": known, "max": frang.limits.clients, "evicted": evicted },
        "blocks": {
            "active": active, "max": frang.limits.blocks, "added": added, "evicted": blocks_evicted,
        },
    }))
}

/// All blocks by their addresses.
pub(super) fn blocks(request: &Request, clock: &Clock) -> Result<Value, ApiError> {
    let frang = of(request)?;
    let all = frang.blocks.all(clock.now).into_iter();
    let named = all.map(|block| (block.address.to_string(), document(&block, clock)));
    Ok(Value::Object(named.collect::<Map<_, _>>()))
}

/// The block of an address.
pub(super) fn block(address: &str, request: &Request, clock: &Clock) -> Result<Value, ApiError> {
    let address = parse(address)?;
    let found = of(request)?.blocks.find(address, clock.now);
    let found = found.ok_or(ApiError::BLOCK_NOT_FOUND)?;
    Ok(document(&found, clock))
}

/// Blocks the address that the content names, for `seconds` if that is there.
pub(super) fn add(content: &[u8], request: &Request, clock: &Clock) -> Result<Value, ApiError> {
    let frang = of(request)?;
    let parsed: Value = serde_json::from_slice(content).map_err(|_| ApiError::JSON)?;
    let Value::Object(parsed) = parsed else {
        return Err(ApiError::NESTED);
    };
    let unknown = parsed
        .keys()
        .find(|name| !["address", "seconds"].contains(&name.as_str()));
    if let Some(unknown) = unknown {
        let text = format!("unknown parameter \"{unknown}\"");
        return Err(ApiError::bad(BAD_BLOCK, text));
    }
    let address = parsed.get("address").and_then(Value::as_str);
    let address = address
        .ok_or_else(|| ApiError::bad(BAD_BLOCK, String::from("missing \"address\" argument")))?;
    let address = parse(address)?;
    let time = match parsed.get("seconds") {
        None => BlockTime::Unlimited,
        Some(seconds) => {
            let seconds = seconds
                .as_u64()
                .and_then(|seconds| u32::try_from(seconds).ok());
            let seconds = seconds.filter(|&seconds| seconds > 0);
            let invalid = || ApiError::bad(BAD_BLOCK, String::from("invalid \"seconds\""));
            BlockTime::Seconds(seconds.ok_or_else(invalid)?)
        }
    };
    frang.block_for(address, time, "api", clock.now);
    let found = frang.blocks.find(address, clock.now);
    found
        .map(|found| document(&found, clock))
        .ok_or(ApiError::BLOCK_NOT_FOUND)
}

/// Ends all blocks.
pub(super) fn remove_all(request: &Request, now: Instant) -> Result<(), ApiError> {
    let frang = of(request)?;
    for block in frang.blocks.all(now) {
        frang.unblock(block.address, now);
    }
    Ok(())
}

/// Ends the block of an address.
pub(super) fn remove(address: &str, request: &Request, now: Instant) -> Result<(), ApiError> {
    let address = parse(address)?;
    match of(request)?.unblock(address, now) {
        true => Ok(()),
        false => Err(ApiError::BLOCK_NOT_FOUND),
    }
}

fn document(block: &crate::frang::blocks::Block, clock: &Clock) -> Value {
    let mut document = json!({ "reason": block.why, "since": clock.date(block.since) });
    if block.until != Instant::FAR {
        document["seconds_left"] = json!(block.until.since(clock.now).as_secs());
    }
    document
}

fn of(request: &Request) -> Result<&Arc<Frang>, ApiError> {
    request.site.frang.as_ref().ok_or(ApiError::PATH_NOT_FOUND)
}

fn parse(address: &str) -> Result<IpAddr, ApiError> {
    let bare = address.replace("%3A", ":").replace("%3a", ":");
    let invalid = |_| ApiError::bad(BAD_BLOCK, format!("invalid address \"{address}\""));
    bare.parse().map_err(invalid)
}

const BAD_BLOCK: &str = "FrangBadBlock";
