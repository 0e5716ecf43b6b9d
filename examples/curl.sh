#!/usr/bin/env bash
# A trade with curl and jq. `SIGN` is a command that reads a quote from standard input and prints its signature.
#   BASE=http://127.0.0.1:8787 AGENT_ID=7 SIGN='cast wallet sign --data …' examples/curl.sh
set -euo pipefail
BASE=${BASE:-http://127.0.0.1:8787}
quotes="$BASE/agents/$AGENT_ID/trade-intents/quote?symbol=NVDA&usdcAmount=100&exits=-800:10000,1500:10000"

# Posts the body of a quote with its signature. A repeated body is never executed twice, so curl may retry it.
submit() { # submit PATH QUOTE
  local signature
  signature=$(printf '%s' "$2" | bash -c "$SIGN")
  printf '%s' "$2" | jq --arg signature "$signature" '.body + {signature: $signature}' |
    curl -sS --fail-with-body --retry 5 --retry-connrefused --max-time 30 \
      -H 'Content-Type: application/json' -d @- "$BASE$1"
}

quote=$(curl -sS --fail-with-body --retry 5 "$quotes")
printf '%s' "$quote" | jq -r '.checks[] | select(.pass | not) | "refused by \(.rule): \(.problem)"'
position=$(submit "/agents/$AGENT_ID/trade-intents" "$quote" | jq -r .positionId)
echo "opened position $position"

quote=$(curl -sS --fail-with-body --retry 5 "$BASE/agents/$AGENT_ID/reduce-intents/quote?positionId=$position&exitBps=10000")
submit "/agents/$AGENT_ID/reduce-intents" "$quote" | jq -r '"closed position \(.positionId) in \(.transactionHash)"'
