// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice The words in which tests sign and relay an owner's messages. The typed data is written out here: it is not
/// taken from the contract.
abstract contract OwnerTest is ProtocolTest {
    enum Message {
        OfferOwnership,
        SetSigner,
        SetMandate,
        StopBuying,
        CloseAll,
        CancelIntents
    }

    uint8 internal constant TRADE = uint8(IAgentRegistry.MandateMode.Trade);
    uint8 internal constant REDUCE_ONLY = uint8(IAgentRegistry.MandateMode.ReduceOnly);
    uint8 internal constant STOPPED = uint8(IAgentRegistry.MandateMode.Stopped);

    string private constant SET_MANDATE =
        "SetMandate(uint256 agentId,uint8 mode,uint256 maxTradeUsdc,uint256 maxDailyTurnoverUsdc,uint256 maxExposureUsdc,address[] allowedTokens,uint256 validUntil,uint256 nonce,uint256 deadline)";
    string private constant OWN_AGENT =
        "OwnAgent(address signer,address vault,string name,string metadataURI,bool linkERC8004,uint256 erc8004AgentId,uint256 nonce,uint256 deadline)";

    address internal relayer = makeAddr("relayer");
    address internal newOwner;
    uint256 internal newOwnerKey;
    uint256 internal ownerKey;
    uint256 internal newSignerKey = 0xB0B;

    /// @dev Who signs as the owner; the account that it signs for is the registry's.
    function setUp() public virtual override {
        super.setUp();
        (owner, ownerKey) = makeAddrAndKey("owner");
        (newOwner, newOwnerKey) = makeAddrAndKey("new owner");
    }

    function _token(string memory symbol, uint256 price, uint256 depth) internal returns (StockToken token) {
        token = _newToken(symbol, 18);
        _listWithDepth(token, price, depth);
    }

    function _mandate(uint8 mode) internal pure returns (IOwnerControls.Mandate memory mandate) {
        mandate.mode = mode;
    }

    function _only(uint256 id) internal pure returns (uint256[] memory ids) {
        ids = new uint256[](1);
        ids[0] = id;
    }

    // Messages: signed with the owner's next nonce, relayed by somebody

    function _setMandate(IOwnerControls.Mandate memory mandate) internal {
        _relay(_mandateCall(mandate, _nonce(), _soon(), ownerKey));
    }

    function _stopBuying() internal {
        _relay(_callOf(Message.StopBuying, _nonce(), _soon(), ownerKey));
    }

    function _closeAll() internal {
        _relay(_callOf(Message.CloseAll, _nonce(), _soon(), ownerKey));
    }

    function _setSigner(uint256 key) internal {
        bytes memory message = abi.encode(
            keccak256("SetSigner(uint256 agentId,address signer,uint256 nonce,uint256 deadline)"),
            agentId,
            vm.addr(key),
            _nonce(),
            _soon()
        );
        bytes memory signature = _signMessage(ownerKey, message);
        _relay(abi.encodeCall(controls.setSigner, (agentId, vm.addr(key), _nonce(), _soon(), signature)));
    }

    function _cancelIntents(uint256 untilNonce) internal {
        _relay(_cancelCall(untilNonce, _nonce(), _soon(), ownerKey));
    }

    function _relay(bytes memory call) internal {
        vm.prank(relayer);
        (bool success, bytes memory reason) = address(controls).call(call);
        if (success) return;
        assembly ("memory-safe") {
            revert(add(reason, 32), mload(reason))
        }
    }

    function _refuseMessage(bytes memory call, bytes memory error) internal {
        vm.prank(relayer);
        (bool success, bytes memory reason) = address(controls).call(call);
        assertFalse(success, "accepted");
        assertEq(reason, error, "refused for another reason");
    }

    /// @dev A call with a message of each kind about the test's agent.
    function _callOf(Message kind, uint256 nonce, uint256 until, uint256 key) internal view returns (bytes memory) {
        if (kind == Message.OfferOwnership) return _offerCall(newOwner, nonce, until, key);
        if (kind == Message.SetSigner) {
            bytes memory message = abi.encode(
                keccak256("SetSigner(uint256 agentId,address signer,uint256 nonce,uint256 deadline)"),
                agentId,
                vm.addr(newSignerKey),
                nonce,
                until
            );
            bytes memory signature = _signMessage(key, message);
            return abi.encodeCall(controls.setSigner, (agentId, vm.addr(newSignerKey), nonce, until, signature));
        }
        if (kind == Message.SetMandate) return _mandateCall(_mandate(REDUCE_ONLY), nonce, until, key);
        if (kind == Message.CancelIntents) return _cancelCall(router.nonces(agentId) + 1, nonce, until, key);
        bytes32 typehash = kind == Message.StopBuying
            ? keccak256("StopBuying(uint256[] agentIds,uint256 nonce,uint256 deadline)")
            : keccak256("CloseAll(uint256[] agentIds,uint256 nonce,uint256 deadline)");
        return _listCall(kind, typehash, _only(agentId), nonce, until, key);
    }

    function _stopCall(uint256[] memory ids, uint256 key) internal view returns (bytes memory) {
        bytes32 typehash = keccak256("StopBuying(uint256[] agentIds,uint256 nonce,uint256 deadline)");
        return _listCall(Message.StopBuying, typehash, ids, _nonce(), _soon(), key);
    }

    function _closeCall(uint256[] memory ids, uint256 key) internal view returns (bytes memory) {
        bytes32 typehash = keccak256("CloseAll(uint256[] agentIds,uint256 nonce,uint256 deadline)");
        return _listCall(Message.CloseAll, typehash, ids, _nonce(), _soon(), key);
    }

    function _offerCall(address to, uint256 nonce, uint256 until, uint256 key) internal view returns (bytes memory) {
        bytes memory message = abi.encode(
            keccak256("OfferOwnership(uint256 agentId,address newOwner,uint256 nonce,uint256 deadline)"),
            agentId,
            to,
            nonce,
            until
        );
        return abi.encodeCall(controls.offerOwnership, (agentId, to, nonce, until, _signMessage(key, message)));
    }

    function _acceptCall(address signer, uint256 nonce, uint256 until, uint256 key)
        internal
        view
        returns (bytes memory)
    {
        bytes memory message = abi.encode(
            keccak256("AcceptOwnership(uint256 agentId,address signer,uint256 nonce,uint256 deadline)"),
            agentId,
            signer,
            nonce,
            until
        );
        return abi.encodeCall(controls.acceptOwnership, (agentId, signer, nonce, until, _signMessage(key, message)));
    }

    function _cancelCall(uint256 untilNonce, uint256 nonce, uint256 until, uint256 key)
        internal
        view
        returns (bytes memory)
    {
        bytes memory message = abi.encode(
            keccak256("CancelIntents(uint256 agentId,uint256 untilNonce,uint256 nonce,uint256 deadline)"),
            agentId,
            untilNonce,
            nonce,
            until
        );
        bytes memory signature = _signMessage(key, message);
        return abi.encodeCall(controls.cancelIntents, (agentId, untilNonce, nonce, until, signature));
    }

    function _mandateCall(IOwnerControls.Mandate memory mandate, uint256 nonce, uint256 until, uint256 key)
        internal
        view
        returns (bytes memory)
    {
        bytes memory message = abi.encode(
            keccak256(bytes(SET_MANDATE)),
            agentId,
            mandate.mode,
            mandate.maxTradeUsdc,
            mandate.maxDailyTurnoverUsdc,
            mandate.maxExposureUsdc,
            keccak256(abi.encodePacked(mandate.allowedTokens)),
            mandate.validUntil,
            nonce,
            until
        );
        return abi.encodeCall(controls.setMandate, (agentId, mandate, nonce, until, _signMessage(key, message)));
    }

    function _listCall(Message kind, bytes32 typehash, uint256[] memory ids, uint256 nonce, uint256 until, uint256 key)
        internal
        view
        returns (bytes memory)
    {
        bytes memory message = abi.encode(typehash, keccak256(abi.encodePacked(ids)), nonce, until);
        bytes memory signature = _signMessage(key, message);
        if (kind == Message.StopBuying) return abi.encodeCall(controls.stopBuying, (ids, nonce, until, signature));
        return abi.encodeCall(controls.closeAll, (ids, nonce, until, signature));
    }

    function _consentOf(IAgentRegistry.Registration memory registration, uint256 key)
        internal
        view
        returns (IAgentRegistry.OwnerConsent memory consent)
    {
        (consent.nonce, consent.deadline) = (controls.nonces(registration.owner), _soon());
        consent.signature = _signMessage(
            key,
            abi.encode(
                keccak256(bytes(OWN_AGENT)),
                registration.signer,
                registration.vault,
                keccak256(bytes(registration.name)),
                keccak256(bytes(registration.metadataURI)),
                registration.linkERC8004,
                registration.erc8004AgentId,
                consent.nonce,
                consent.deadline
            )
        );
    }

    function _signMessage(uint256 key, bytes memory message) internal view returns (bytes memory) {
        bytes32 separator = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Service OwnerControls"),
                keccak256("1"),
                block.chainid,
                address(controls)
            )
        );
        return _sign(key, keccak256(abi.encodePacked("\x19\x01", separator, keccak256(message))));
    }

    /// @dev The next nonce of the agent's owner.
    function _nonce() internal view returns (uint256) {
        return controls.nonces(agents.ownerOf(agentId));
    }

    function _soon() internal view returns (uint256) {
        return block.timestamp + 600;
    }
}
