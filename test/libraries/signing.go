// Signs the typed data of a file with a key, by go-ethereum, and prints the signatures.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
)

func main() {
	text, _ := os.ReadFile(os.Args[1])
	var all []apitypes.TypedData
	if err := json.Unmarshal(text, &all); err != nil {
		panic(err)
	}
	key, _ := crypto.HexToECDSA(strings.TrimPrefix(os.Args[2], "0x"))
	for _, typedData := range all {
		digest, _, err := apitypes.TypedDataAndHash(typedData)
		if err != nil {
			panic(err)
		}
		signature, _ := crypto.Sign(digest, key)
		signature[64] += 27
		fmt.Println(hex.EncodeToString(signature))
	}
}
