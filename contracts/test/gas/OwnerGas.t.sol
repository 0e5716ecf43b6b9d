// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {OwnerTest} from "../owner/OwnerTest.sol";

/// @notice What an owner's messages cost their relayer, and what a mandate costs an agent: whole transactions, as in
/// RouterGas
/// forge-config: default.isolate = true
contract OwnerGasTest is OwnerTest {
    function setUp() public override {
        super.setUp();
        uint256 mine = agentId;
        agentId = _register(vm.addr(signerKey));
        _submit(_reduceIntent(_open(nvda, 5_000 * USDC), 1_000));
        agentId = mine;
        _useDefaultLimits();
        skip(5 minutes);
        _setOraclePrice(nvda, NVDA_PRICE);
        _setOraclePrice(tsla, TSLA_PRICE);
        skip(1);
    }

    function test_AnOpenWithAMandate() public {
        _setMandate(_fullMandate());
        _open(tsla, 1_000 * USDC);
        skip(1);
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 10_000 * USDC);
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(intent));
        vm.prank(executor);
        router.openPosition(intent, signature);
        _record("openPosition, 3 rules, a mandate with every limit");
    }

    function test_ASaleOfACloseAll() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        skip(1);
        _closeAll();
        _record("closeAll, one agent");
        vm.prank(admin);
        usdc.mint(keeper, 1);
        _exit(id);
        _record("executeExit, a close all");
    }

    function test_Mandates() public {
        _setMandate(_mandate(TRADE));
        _record("setMandate, the owner's first, without limits");
        _setMandate(_fullMandate());
        _record("setMandate, every limit, two tokens");
        _stopBuying();
        _record("stopBuying, one agent");
    }

    function test_AStopOfTwentyAgents() public {
        _deposit(2 * CAP);
        uint256[] memory ids = new uint256[](20);
        ids[0] = agentId;
        for (uint256 i = 1; i < 20; ++i) {
            ids[i] = _register(vm.addr(0x1000 + i));
        }
        _relay(_stopCall(ids, ownerKey));
        _record("stopBuying, twenty agents");
        _relay(_closeCall(ids, ownerKey));
        _record("closeAll, twenty stopped agents");
    }

    function test_KeysAndOwnership() public {
        _setSigner(newSignerKey);
        _record("setSigner");
        _relay(_offerCall(newOwner, _nonce(), _soon(), ownerKey));
        _record("offerOwnership");
        _relay(_acceptCall(vm.addr(signerKey), 0, _soon(), newOwnerKey));
        _record("acceptOwnership");
        _cancelIntentsAs(newOwnerKey);
        _record("cancelIntents, one");
    }

    function test_ARegistration() public {
        IAgentRegistry.Registration memory registration = IAgentRegistry.Registration({
            owner: newOwner,
            vault: address(vault),
            name: "Momentum",
            metadataURI: "ipfs://agent",
            signer: vm.addr(newSignerKey),
            linkERC8004: false,
            erc8004AgentId: 0
        });
        bytes32 digest = agents.hashSelfRegister(
            address(vault), "Momentum", "ipfs://agent", registration.signer, false, 0, 0, _soon()
        );
        bytes memory signature = _sign(newSignerKey, digest);
        IAgentRegistry.OwnerConsent memory consent = _consentOf(registration, newOwnerKey);
        agents.registerOwnedAgent(registration, _soon(), signature, consent);
        _record("registerOwnedAgent");
    }

    function _fullMandate() private view returns (IOwnerControls.Mandate memory mandate) {
        mandate.maxTradeUsdc = 15_000 * USDC;
        mandate.maxDailyTurnoverUsdc = 30_000 * USDC;
        mandate.maxExposureUsdc = 20_000 * USDC;
        mandate.allowedTokens = new address[](2);
        (mandate.allowedTokens[0], mandate.allowedTokens[1]) = (address(nvda), address(tsla));
        mandate.validUntil = block.timestamp + 30 days;
    }

    function _cancelIntentsAs(uint256 key) private {
        _relay(_cancelCall(router.nonces(agentId) + 1, _nonce(), _soon(), key));
    }

    function _record(string memory name) private {
        vm.snapshotValue("OwnerGas", name, vm.lastCallGas().gasTotalUsed);
    }
}
