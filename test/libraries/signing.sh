# Signs the typed data of a file with a key, by cast of Foundry, and prints the signatures.
KEY=$2
for index in $(jq 'keys[]' "$1"); do
  jq ".[$index]" "$1" > typed-data.json
  cast wallet sign --private-key $KEY --data --from-file typed-data.json
done
