// An agent on the plain HTTP API, signing with go-ethereum: it buys and sells again, and prints both receipts.
//
//	BASE=http://127.0.0.1:8787 AGENT_KEY=0x… [ATS_AGENT=7] go run .
//
// Without ATS_AGENT it registers, where no fee is due. `npm run clients -- go` runs it against `npm run dev`.
package main

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
)

type object = map[string]any

var base = cmp.Or(os.Getenv("BASE"), "http://127.0.0.1:8787")

// call returns the JSON of a request. A body is executed at most once, so it is posted until its outcome is known.
func call(method, path string, body []byte) object {
	for until := time.Now().Add(30 * time.Second); ; {
		request, err := http.NewRequest(method, base+path, bytes.NewReader(body))
		check(err)
		request.Header.Set("Content-Type", "application/json")
		answer, wait := object{"code": "NETWORK_ERROR", "retryable": true}, 1.0
		if response, err := http.DefaultClient.Do(request); err == nil {
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if answer = nil; json.Unmarshal(text, &answer) == nil && response.StatusCode < 300 {
				return answer
			}
		}
		if seconds, ok := answer["retryAfterSeconds"].(float64); ok {
			wait = seconds
		}
		if answer["retryable"] != true || time.Now().After(until) {
			log.Fatalf("%v: %v %v", answer["code"], answer["error"], answer["remedy"])
		}
		time.Sleep(time.Duration(wait * float64(time.Second)))
	}
}

// signAndPost compares a quote with what was asked for, signs its typed data, and posts its body.
func signAndPost(key *ecdsa.PrivateKey, path string, quote, asked object) object {
	checks, _ := quote["checks"].([]any)
	for _, each := range checks {
		if rule := each.(object); rule["pass"] != true {
			log.Fatalf("The quote fails %v.", rule["rule"])
		}
	}
	encoded, _ := json.Marshal(quote["typedData"])
	var typedData apitypes.TypedData
	check(json.Unmarshal(encoded, &typedData))
	for field, value := range asked {
		if given := fmt.Sprint(typedData.Message[field]); !strings.EqualFold(given, fmt.Sprint(value)) {
			log.Fatalf("The quote has another %s: %s", field, given)
		}
	}
	hash, _, err := apitypes.TypedDataAndHash(typedData)
	check(err)
	signature, err := crypto.Sign(hash, key)
	check(err)
	signature[64] += 27 // go-ethereum returns the recovery id 0 or 1
	body := quote["body"].(object)
	body["signature"] = hexutil.Encode(signature)
	encoded, _ = json.Marshal(body)
	return call("POST", path, encoded)
}

func main() {
	key, err := crypto.HexToECDSA(strings.TrimPrefix(os.Getenv("AGENT_KEY"), "0x"))
	check(err)
	signer := crypto.PubkeyToAddress(key.PublicKey).Hex()
	agent := os.Getenv("ATS_AGENT")
	if agent == "" {
		vault := call("GET", "/vaults/genesis", nil)["vault"].(object)["contractAddress"]
		asked := object{"signer": signer, "vault": vault, "name": "go", "metadataURI": "data:,"}
		quote := call("GET", "/agents/register/quote?"+query(asked), nil)
		if quote["x402"].(object)["enabled"] == true {
			log.Fatal("The registration has a fee: register with `ats register`, then pass ATS_AGENT.")
		}
		agent = fmt.Sprint(signAndPost(key, "/agents/register", quote, asked)["agentId"])
	}
	token := call("GET", "/prices?symbols=NVDA", nil)["prices"].(object)["NVDA"].(object)["address"]
	trades := "/agents/" + agent + "/trade-intents"
	quote := call("GET", trades+"/quote?symbol=NVDA&usdcAmount=100&exits=-800:10000,1500:10000", nil)
	opened := signAndPost(key, trades, quote, object{"agentId": agent, "token": token, "usdcAmount": "100000000"})
	fmt.Println("opened position", opened["positionId"], "in", opened["transactionHash"])
	asked := object{"positionId": opened["positionId"], "exitBps": 10000}
	sales := "/agents/" + agent + "/reduce-intents"
	receipt, _ := json.Marshal(signAndPost(key, sales, call("GET", sales+"/quote?"+query(asked), nil), asked))
	fmt.Println(string(receipt))
}

func query(values object) string {
	given := url.Values{}
	for name, value := range values {
		given.Set(name, fmt.Sprint(value))
	}
	return given.Encode()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
