#!/usr/bin/env bash
# Three libraries hand out an event for a block of server-sent events that is only a comment, such as `: heartbeat`.
# The standard dispatches nothing for it: https://html.spec.whatwg.org/multipage/server-sent-events.html, "dispatch the
# event", step 2 (an empty data buffer). A program that parses the data of every event then fails at each heartbeat.
#
# httpx-sse 0.4.3 (Python), @microsoft/fetch-event-source 2.0.1 (JavaScript), r3labs/sse 2.10.0 (Go). Seen 2026-11-29.
# Needs node, npm, python3 and go. Exits with 1 if one of them behaves otherwise than recorded below.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

# A stream that the standard reads as two events.
cat >server.mjs <<'JS'
import { createServer } from 'node:http'
const blocks = [': heartbeat', 'id: 7\nevent: trade\ndata: {}', ': heartbeat', 'id: 8\nevent: trade\ndata: {}']
const server = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(blocks.map(block => `${block}\n\n`).join(''))
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
JS
mkfifo port
node server.mjs >port &
server=$!
read -r number <port
url=http://127.0.0.1:$number

# Each program prints `<event>=<data>` for each event until the second trade.
cat >httpx-sse.py <<'PY'
import sys
import httpx
from httpx_sse import connect_sse
with httpx.Client() as client, connect_sse(client, "GET", sys.argv[1]) as source:
    for event in source.iter_sse():
        print(f"{event.event}={event.data}", flush=True)
        if event.id == "8":
            break
PY
cat >fetch-event-source.mjs <<'JS'
// It is for browsers, of which it uses this much.
globalThis.window = { fetch, setTimeout, clearTimeout }
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }
const { fetchEventSource } = await import('@microsoft/fetch-event-source')
const onmessage = ({ event, data, id }) => {
  console.log(`${event}=${data}`)
  if (id === '8') process.exit()
}
await fetchEventSource(process.argv[2], { openWhenHidden: true, onmessage })
JS
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/r3labs/sse/v2"
)

func main() {
	_ = sse.NewClient(os.Args[1]).SubscribeRaw(func(event *sse.Event) {
		fmt.Printf("%s=%s\n", event.Event, event.Data)
		if string(event.ID) == "8" {
			os.Exit(0)
		}
	})
}
GO

python3 -m venv python
python/bin/pip install --quiet httpx-sse==0.4.3 httpx==0.28.1
npm install --silent --no-save --prefix . @microsoft/fetch-event-source@2.0.1 >/dev/null
go mod init finding 2>/dev/null
go get github.com/r3labs/sse/v2@v2.10.0 2>/dev/null

changed=0
expect() { # name, the events that it handed out on the day above, the command
  local seen
  seen=$("${@:3}" | paste -sd ' ')
  printf '%-44s %s\n' "$1" "$seen"
  if [ "$seen" != "$2" ]; then
    echo "  recorded: $2"
    changed=1
  fi
}
printf '%-44s %s\n' 'the standard' 'trade={} trade={}'
# Before the first id it drops the comment, afterwards it makes a message of it.
expect 'httpx-sse 0.4.3' 'trade={} message= trade={}' python/bin/python httpx-sse.py "$url"
expect '@microsoft/fetch-event-source 2.0.1' '= trade={} = trade={}' node fetch-event-source.mjs "$url"
# The same, and the empty event has the id of the one before.
expect 'github.com/r3labs/sse 2.10.0' 'trade={} = trade={}' go run main.go "$url"
exit $changed
