// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {SmartAccount} from "../../src/embedded/SmartAccount.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

contract SigningTest is ProtocolTest {
    bytes private invalid = abi.encodeWithSelector(ITradeRouter.InvalidSignature.selector);

    function test_TheDomainIsTheServices() public view {
        (bytes1 fields, string memory name, string memory version, uint256 chainId, address verifier,,) =
            router.eip712Domain();
        assertEq(fields, hex"0f");
        assertEq(name, "Service TradeRouter");
        assertEq(version, "1");
        assertEq(chainId, block.chainid);
        assertEq(verifier, address(router));
    }

    function test_TheTypehashesAreThoseOfTheProtocol() public view {
        assertEq(
            digests.OPEN_POSITION_TYPEHASH(),
            keccak256(
                "OpenPosition(uint256 agentId,address vault,address token,uint256 usdcAmount,uint256 minTokenOut,uint16 maxSlippageBps,bytes32 exitsHash,uint256 deadline,uint256 nonce)"
            )
        );
        assertEq(
            digests.ADD_TO_POSITION_TYPEHASH(),
            keccak256(
                "AddToPosition(uint256 agentId,uint256 positionId,uint256 usdcAmount,uint256 minTokenOut,uint16 maxSlippageBps,uint256 deadline,uint256 nonce)"
            )
        );
        assertEq(
            digests.REDUCE_POSITION_TYPEHASH(),
            keccak256(
                "ReducePosition(uint256 agentId,uint256 positionId,uint16 exitBps,uint256 deadline,uint256 nonce)"
            )
        );
        assertEq(
            digests.UPDATE_EXIT_LADDER_TYPEHASH(),
            keccak256(
                "UpdateExitLadder(uint256 agentId,uint256 positionId,bytes32 exitsHash,uint256 deadline,uint256 nonce)"
            )
        );
    }

    function test_TheExitsHashIsTheEncodingOfTheRulesHashes() public view {
        IPositionManager.ExitRule[] memory rules = _threeRules();
        bytes32[] memory hashes = new bytes32[](3);
        for (uint256 i; i < 3; ++i) {
            hashes[i] = keccak256(abi.encode(rules[i].triggerType, rules[i].triggerBps, rules[i].exitBps));
        }
        assertEq(digests.hashExits(rules), keccak256(abi.encode(hashes)));
    }

    function test_TheDigestsFollowEip712() public view {
        ITradeRouter.PositionIntent memory open = _openIntent(nvda, 1_000 * USDC);
        assertEq(
            digests.hashOpenPosition(open),
            _digest(
                abi.encode(
                    digests.OPEN_POSITION_TYPEHASH(),
                    open.agentId,
                    open.vault,
                    open.token,
                    open.usdcAmount,
                    open.minTokenOut,
                    open.maxSlippageBps,
                    digests.hashExits(open.exits),
                    open.deadline,
                    open.nonce
                )
            )
        );
        ITradeRouter.AddToPositionIntent memory add = _addIntent(3, 1_000 * USDC);
        assertEq(
            digests.hashAddToPosition(add),
            _digest(
                abi.encode(
                    digests.ADD_TO_POSITION_TYPEHASH(),
                    add.agentId,
                    add.positionId,
                    add.usdcAmount,
                    add.minTokenOut,
                    add.maxSlippageBps,
                    add.deadline,
                    add.nonce
                )
            )
        );
        ITradeRouter.ReducePositionIntent memory reduce = _reduceIntent(3, 2_500);
        assertEq(
            digests.hashReducePosition(reduce),
            _digest(
                abi.encode(
                    digests.REDUCE_POSITION_TYPEHASH(),
                    reduce.agentId,
                    reduce.positionId,
                    reduce.exitBps,
                    reduce.deadline,
                    reduce.nonce
                )
            )
        );
        ITradeRouter.UpdateExitLadderIntent memory update = _updateIntent(3, _threeRules());
        assertEq(
            digests.hashUpdateExitLadder(update),
            _digest(
                abi.encode(
                    digests.UPDATE_EXIT_LADDER_TYPEHASH(),
                    update.agentId,
                    update.positionId,
                    digests.hashExits(update.exits),
                    update.deadline,
                    update.nonce
                )
            )
        );
    }

    function test_RefusesAnotherSigner() public {
        signerKey = 0xBAD;
        _refuse(_openIntent(nvda, 1_000 * USDC), invalid);
    }

    function test_RefusesAChangedIntent() public {
        ITradeRouter.PositionIntent memory signed = _openIntent(nvda, 1_000 * USDC);
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(signed));
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_001 * USDC);
        _refuseSigned(intent, signature);

        intent = _openIntent(nvda, 1_000 * USDC);
        intent.exits[0].exitBps = 5_001;
        _refuseSigned(intent, signature);

        intent.exits = _ladder(signed.exits[1], signed.exits[2]);
        _refuseSigned(intent, signature);
    }

    function test_RefusesTheSignatureOfAnotherAction() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        ITradeRouter.ReducePositionIntent memory reduce = _reduceIntent(id, 5_000);
        bytes memory signature = _sign(signerKey, digests.hashAddToPosition(_addIntent(id, 5_000)));
        vm.prank(executor);
        vm.expectRevert(ITradeRouter.InvalidSignature.selector);
        router.reducePosition(reduce, signature);
    }

    function test_RefusesWhatWasAlreadyUsed() public {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        _submit(intent);
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, 1, 0));
    }

    function test_RefusesTheHighTwinAndAMalformedSignature() public {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(signerKey, digests.hashOpenPosition(intent));
        uint256 order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;
        _refuseSigned(intent, abi.encodePacked(r, bytes32(order - uint256(s)), v == 27 ? 28 : 27));
        _refuseSigned(intent, abi.encodePacked(r, s));
        _refuseSigned(intent, "");
        _refuseSigned(intent, abi.encodePacked(r, s, uint8(v - 27)));
    }

    function test_RefusesTheSignatureForAnotherChain() public {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(intent));
        vm.chainId(block.chainid + 1);
        _refuseSigned(intent, signature);
    }

    function test_AContractMaySign() public {
        SmartAccount account = new SmartAccount(vm.addr(signerKey));
        agentId = _register(address(account));
        uint256 id = _open(nvda, 1_000 * USDC);
        _submit(_addIntent(id, 500 * USDC));
        _submit(_updateIntent(id, _ladder(_stop(-500, 10_000))));
        _submit(_reduceIntent(id, 10_000));
        assertEq(router.nonces(agentId), 4);

        signerKey = 0xBAD;
        _refuse(_openIntent(nvda, 1_000 * USDC), invalid);
    }

    function test_AnAccountWithDelegatedCodeSignsWithItsKey() public {
        SmartAccount implementation = new SmartAccount(address(1));
        vm.signAndAttachDelegation(address(implementation), signerKey);
        vm.prank(executor);
        (bool touched,) = vm.addr(signerKey).call("");
        assertTrue(touched);
        assertGt(vm.addr(signerKey).code.length, 0);
        _open(nvda, 1_000 * USDC);
    }

    function test_AReplacedSignerIsVoid() public {
        vm.prank(owner);
        agents.setAgentSigner(agentId, vm.addr(0xBEEF));
        _refuse(_openIntent(nvda, 1_000 * USDC), invalid);
        signerKey = 0xBEEF;
        _open(nvda, 1_000 * USDC);
    }

    function testFuzz_NoNoiseIsASignature(bytes memory noise) public {
        _refuseSigned(_openIntent(nvda, 1_000 * USDC), noise);
    }

    function _refuseSigned(ITradeRouter.PositionIntent memory intent, bytes memory signature) private {
        vm.prank(executor);
        vm.expectRevert(ITradeRouter.InvalidSignature.selector);
        router.openPosition(intent, signature);
        assertEq(router.nonces(agentId), 0);
    }

    function _digest(bytes memory structure) private view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Service TradeRouter"),
                keccak256("1"),
                block.chainid,
                address(router)
            )
        );
        return keccak256(abi.encodePacked(hex"1901", domain, keccak256(structure)));
    }
}
