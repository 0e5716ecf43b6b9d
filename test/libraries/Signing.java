import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import org.web3j.crypto.Credentials;
import org.web3j.crypto.Sign;
import org.web3j.utils.Numeric;

/** Signs the typed data of a file with a key, by web3j, and prints the signatures. */
public class Signing {
  public static void main(String[] args) throws Exception {
    var key = Credentials.create(args[1]).getEcKeyPair();
    for (JsonNode typedData : new ObjectMapper().readTree(new File(args[0]))) {
      var signature = Sign.signTypedData(typedData.toString(), key);
      System.out.println(Numeric.toHexString(signature.getR()) + Numeric.toHexString(signature.getS()).substring(2) + Numeric.toHexString(signature.getV()).substring(2));
    }
  }
}
