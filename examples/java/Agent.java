import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.stream.Collectors;
import org.web3j.crypto.Credentials;
import org.web3j.crypto.Sign;
import org.web3j.crypto.StructuredDataEncoder;
import org.web3j.utils.Numeric;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * An agent on the plain HTTP API, signing with web3j: it buys and sells again, and prints both receipts.
 *
 * <pre>BASE=http://127.0.0.1:8787 AGENT_KEY=0x… [ATS_AGENT=7] mvn -q compile exec:java</pre>
 *
 * web3j needs Java 21. Without ATS_AGENT it registers, where no fee is due. `npm run clients -- java` runs it against
 * `npm run dev`.
 */
public final class Agent {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final HttpClient http = HttpClient.newHttpClient();
    private final String base = System.getenv().getOrDefault("BASE", "http://127.0.0.1:8787");
    private final Credentials signer = Credentials.create(System.getenv("AGENT_KEY"));

    public static void main(String[] arguments) throws Exception {
        new Agent().trade(System.getenv("ATS_AGENT"));
    }

    private void trade(String given) throws Exception {
        String id = given == null ? register() : given;
        String token = get("/prices", Map.of("symbols", "NVDA")).at("/prices/NVDA/address").asText();

        String trades = "/agents/" + id + "/trade-intents";
        var trade = Map.of("symbol", "NVDA", "usdcAmount", "100", "exits", "-800:10000,1500:10000");
        var asked = Map.of("agentId", id, "token", token, "usdcAmount", "100000000");
        JsonNode opened = signAndPost(trades, get(trades + "/quote", trade), asked);
        String position = opened.get("positionId").asText();
        System.out.println("opened position " + position + " in " + opened.get("transactionHash").asText());

        String sales = "/agents/" + id + "/reduce-intents";
        var sale = Map.of("positionId", position, "exitBps", "10000");
        System.out.println(signAndPost(sales, get(sales + "/quote", sale), sale));
    }

    private String register() throws Exception {
        String vault = get("/vaults/genesis", Map.of()).at("/vault/contractAddress").asText();
        var asked = Map.of("signer", signer.getAddress(), "vault", vault, "name", "java", "metadataURI", "data:,");
        JsonNode quote = get("/agents/register/quote", asked);
        if (quote.at("/x402/enabled").asBoolean())
            throw new IOException("The registration has a fee: register with `ats register`, then pass ATS_AGENT.");
        return signAndPost("/agents/register", quote, asked).get("agentId").asText();
    }

    /** Compares a quote with what was asked for, signs its typed data, and posts its body. */
    private JsonNode signAndPost(String path, JsonNode quote, Map<String, String> asked) throws Exception {
        for (JsonNode check : quote.path("checks"))
            if (!check.get("pass").asBoolean()) throw new IOException("The quote fails " + check.get("rule"));
        JsonNode typedData = quote.get("typedData");
        for (var field : asked.entrySet()) {
            String value = typedData.at("/message/" + field.getKey()).asText();
            if (!value.equalsIgnoreCase(field.getValue()))
                throw new IOException("The quote has another " + field.getKey() + ": " + value);
        }
        byte[] digest = new StructuredDataEncoder(typedData.toString()).hashStructuredData();
        Sign.SignatureData signed = Sign.signMessage(digest, signer.getEcKeyPair(), false);
        ObjectNode body = quote.<ObjectNode>get("body").deepCopy();
        body.put("signature", Numeric.toHexString(signed.getR()) + Numeric.toHexStringNoPrefix(signed.getS())
            + Numeric.toHexStringNoPrefix(signed.getV()));
        return call(request(path).POST(BodyPublishers.ofString(body.toString())).build());
    }

    private JsonNode get(String path, Map<String, String> query) throws Exception {
        String text = query.entrySet().stream()
            .map(each -> each.getKey() + "=" + URLEncoder.encode(each.getValue(), UTF_8))
            .collect(Collectors.joining("&"));
        return call(request(path + "?" + text).build());
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create(base + path)).header("content-type", "application/json");
    }

    /** Sends a request. A body is executed at most once, so it is posted again until its outcome is known. */
    private JsonNode call(HttpRequest request) throws Exception {
        for (Instant until = Instant.now().plusSeconds(30); ; ) {
            JsonNode answer = JSON.createObjectNode().put("code", "NETWORK_ERROR").put("retryable", true);
            try {
                var response = http.send(request, BodyHandlers.ofString());
                answer = JSON.readTree(response.body());
                if (response.statusCode() < 300) return answer;
            } catch (IOException lost) {
                // It is sent again below.
            }
            if (!answer.path("retryable").asBoolean() || Instant.now().isAfter(until))
                throw new IOException(answer.toString());
            Thread.sleep(Duration.ofSeconds(answer.path("retryAfterSeconds").asLong(1)).toMillis());
        }
    }
}
