//! Signs the typed data of a file with a key, by alloy, and prints the signatures.
use alloy::{dyn_abi::TypedData, hex, signers::SignerSync, signers::local::PrivateKeySigner};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [file, key] = [1, 2].map(|index| std::env::args().nth(index).expect("file and key"));
    let signer: PrivateKeySigner = key.parse()?;
    for typed_data in serde_json::from_str::<Vec<TypedData>>(&std::fs::read_to_string(file)?)? {
        println!("{}", hex::encode(signer.sign_dynamic_typed_data_sync(&typed_data)?.as_bytes()));
    }
    Ok(())
}
