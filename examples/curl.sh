#!/usr/bin/env bash
# A trade with curl. `SIGN` is a command that reads a quote, compares it with what you want, and prints the body to post: the
# quote's `body` with the signature of its `typedData`. `ats sign` does.
#   BASE=http://127.0.0.1:8787 ATS_AGENT=7 SIGN='ats sign' examples/curl.sh
set -euo pipefail
agent="${BASE:-http://127.0.0.1:8787}/agents/$ATS_AGENT"

# Prints a quote. Stops if a check fails.
quote() { # quote PATH QUERY
  local answer
  answer=$(curl -sS --fail-with-body --retry 5 --max-time 30 "$agent/$1/quote?$2")
  if [[ $answer == *'"pass":false'* ]]; then
    echo "A check fails: $answer" >&2
    return 1
  fi
  printf '%s' "$answer"
}

# Posts a signed body. The service executes an identical body at most once, so curl may post it again.
submit() { # submit PATH
  curl -sS --fail-with-body --retry 5 --retry-connrefused --max-time 30 \
    -H 'Content-Type: application/json' -d @- "$agent/$1"
}

# Prints a field of a JSON object.
field() { # field NAME
  sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

opening=$(quote trade-intents 'symbol=NVDA&usdcAmount=100&exits=-800:10000,1500:10000')
position=$(printf '%s' "$opening" | bash -c "$SIGN" | submit trade-intents | field positionId)
echo "opened position $position"

closing=$(quote reduce-intents "positionId=$position&exitBps=10000")
hash=$(printf '%s' "$closing" | bash -c "$SIGN" | submit reduce-intents | field transactionHash)
echo "closed position $position in $hash"
