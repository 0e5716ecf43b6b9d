// Follows the stream at a URL with a library of Go, and prints each event that the library hands out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	r3labs "github.com/r3labs/sse/v2"
	"github.com/tmaxmax/go-sse"
)

func show(event, data string) {
	line, _ := json.Marshal([]string{event, data})
	fmt.Println(string(line))
}

func main() {
	library, url := os.Args[1], os.Args[2]
	if library == "github.com/r3labs/sse/v2" {
		client := r3labs.NewClient(url)
		for { // it returns when a stream ends, and keeps the id
			_ = client.SubscribeRaw(func(event *r3labs.Event) { show(string(event.Event), string(event.Data)) })
		}
	}
	if library == "github.com/tmaxmax/go-sse" {
		request, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
		connection := sse.DefaultClient.NewConnection(request)
		connection.SubscribeToAll(func(event sse.Event) { show(event.Type, event.Data) })
		_ = connection.Connect()
	}
}
