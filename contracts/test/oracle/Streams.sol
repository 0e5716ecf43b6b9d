// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IVerifierProxy} from "../../src/interfaces/IVerifierProxy.sol";
import {Chainlink} from "./Chainlink.sol";

interface IVerifierSetup {
    struct AddressAndWeight {
        address addr;
        uint64 weight;
    }

    function setConfig(bytes32 digest, address[] memory signers, uint8 f, AddressAndWeight[] memory recipients) external;
    function deactivateConfig(bytes32 digest) external;
}

interface IVerifierProxySetup is IVerifierProxy {
    function initializeVerifier(address verifier) external;
    function setFeeManager(address feeManager) external;
}

interface IReportFeeManager {
    function updateSubscriberGlobalDiscount(address subscriber, address token, uint64 discount) external;
    function i_linkAddress() external view returns (address);
}

/// @notice Chainlink's own verifier of signed reports, from its published source, with signers whose keys are known; and a
/// writer of reports
contract Streams is Chainlink {
    /// @dev Times in seconds, prices with 18 decimals. `tokenPrice` is of schema 10 alone, `bid` and `ask` of schema 11.
    struct Report {
        bytes32 feedId;
        uint256 observedAt;
        uint256 seenAt;
        uint256 expiresAt;
        uint256 status;
        int192 price;
        int192 tokenPrice;
        int192 bid;
        int192 ask;
    }

    bytes32 public constant DIGEST = bytes32(uint256(0xC0FFEE));
    uint192 private constant FEE = 0.01e18;

    IVerifierProxySetup public immutable proxy;
    IVerifierSetup public immutable verifier;
    uint256 private immutable _signatures;

    uint256[] private _keys;

    /// @param f How many signers may lie: there are 3 f + 1 of them, and f + 1 sign
    constructor(uint8 f) {
        proxy = IVerifierProxySetup(_create("VerifierProxy", abi.encode(address(0))));
        verifier = IVerifierSetup(_create("Verifier", abi.encode(proxy)));
        proxy.initializeVerifier(address(verifier));
        _signatures = f + 1;
        address[] memory signers = new address[](3 * uint256(f) + 1);
        for (uint256 i; i < signers.length; ++i) {
            _keys.push(uint256(keccak256(abi.encode("signer", i))));
            signers[i] = vm.addr(_keys[i]);
        }
        verifier.setConfig(DIGEST, signers, f, new IVerifierSetup.AddressAndWeight[](0));
    }

    /// @notice Adds a fee manager, to whom every report costs a hundredth of a token; `subscriber` has paid beforehand
    function chargeFees(address link, address weth, address subscriber) external returns (address feeManager) {
        address rewards = _create("RewardManager", abi.encode(link));
        feeManager = _create("ReportFeeManager", abi.encode(link, weth, proxy, rewards));
        proxy.setFeeManager(feeManager);
        IReportFeeManager(feeManager).updateSubscriberGlobalDiscount(subscriber, link, 1e18);
    }

    /// @notice A report observed and seen now, which expires in a month
    function report(bytes32 feedId, int192 price, uint256 status) public view returns (Report memory) {
        return Report({
            feedId: feedId,
            observedAt: block.timestamp,
            seenAt: block.timestamp,
            expiresAt: block.timestamp + 30 days,
            status: status,
            price: price,
            tokenPrice: price,
            bid: price,
            ask: price
        });
    }

    function signed(bytes32 feedId, int192 price, uint256 status) external view returns (bytes memory) {
        return sign(report(feedId, price, status));
    }

    function sign(Report memory r) public view returns (bytes memory) {
        return signBytes(encode(r));
    }

    /// @notice Signs any bytes, with the keys of the first f + 1 signers
    function signBytes(bytes memory data) public view returns (bytes memory) {
        bytes32[3] memory context = [DIGEST, bytes32(uint256(1)), bytes32(0)];
        bytes32 digest = keccak256(abi.encodePacked(keccak256(data), context));
        bytes32[] memory rs = new bytes32[](_signatures);
        bytes32[] memory ss = new bytes32[](_signatures);
        bytes memory vs = new bytes(32);
        for (uint256 i; i < _signatures; ++i) {
            uint8 v;
            (v, rs[i], ss[i]) = vm.sign(_keys[i], digest);
            vs[i] = bytes1(v - 27);
        }
        return abi.encode(context, data, rs, ss, bytes32(vs));
    }

    function encode(Report memory r) public pure returns (bytes memory) {
        // forge-lint: disable-start(unsafe-typecast): tests stay within the types
        uint32 at = uint32(r.observedAt);
        bytes memory head = abi.encode(r.feedId, at, at, FEE, FEE, uint32(r.expiresAt));
        uint64 seenAt = uint64(r.seenAt * 1e9);
        uint32 status = uint32(r.status);
        // forge-lint: disable-end(unsafe-typecast)
        uint256 schema = uint16(bytes2(r.feedId));
        if (schema == 8) return bytes.concat(head, abi.encode(seenAt, r.price, status));
        if (schema == 10) {
            return bytes.concat(head, abi.encode(seenAt, r.price, status, 1e18, 0, 0, r.tokenPrice));
        }
        return bytes.concat(head, abi.encode(r.price, seenAt, r.bid, 100, r.ask, 100, r.price, status));
    }
}
