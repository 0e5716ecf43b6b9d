// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {AgentRegistry} from "../../src/AgentRegistry.sol";
import {AllocationManager} from "../../src/AllocationManager.sol";
import {FeeManager} from "../../src/FeeManager.sol";
import {MandateVault} from "../../src/MandateVault.sol";
import {PositionManager} from "../../src/PositionManager.sol";
import {PriceOracle} from "../../src/PriceOracle.sol";
import {PromotionCriteria} from "../../src/PromotionCriteria.sol";
import {TokenRegistry} from "../../src/TokenRegistry.sol";
import {TradePolicy} from "../../src/TradePolicy.sol";
import {TradeRouter} from "../../src/TradeRouter.sol";
import {VaultTrackRegistry} from "../../src/VaultTrackRegistry.sol";
import {ERC8004IdentityRegistry} from "../../src/embedded/ERC8004IdentityRegistry.sol";
import {UsdcToken} from "../../src/embedded/UsdcToken.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";

/// @title The registry and the contracts it calls, with one vault of three tracks and a fee of 1 USDC
abstract contract RegistryFixture is Test {
    uint256 internal constant FEE = 1e6;
    uint256 internal constant SIGNER_KEY = 0xA11CE;
    string internal constant NAME = "Momentum";
    string internal constant URI = "ipfs://agent";

    UsdcToken internal usdc;
    ERC8004IdentityRegistry internal identities;
    VaultTrackRegistry internal tracks;
    FeeManager internal fees;
    AllocationManager internal allocations;
    AgentRegistry internal registry;

    address internal treasury = makeAddr("treasury");
    address internal vault;
    address internal registrar = makeAddr("registrar");
    address internal operator = makeAddr("operator");
    address internal relayer = makeAddr("relayer");
    address internal stranger = makeAddr("stranger");
    address internal signer = vm.addr(SIGNER_KEY);

    function setUp() public virtual {
        vm.warp(1_000_000);
        usdc = new UsdcToken(address(this), "USD Coin", "USDC", "2");
        identities = new ERC8004IdentityRegistry();
        tracks = new VaultTrackRegistry(address(this));
        fees = new FeeManager(address(this), address(usdc), treasury);
        allocations = new AllocationManager(address(this), address(tracks));
        registry =
            new AgentRegistry(address(this), address(tracks), address(allocations), address(fees), address(identities));

        _deployTrading();
        allocations.setAgentRegistry(address(registry));
        allocations.grantRole(allocations.OPERATOR_ROLE(), operator);
        fees.setAgentRegistry(address(registry));
        fees.setRegistrationFee(FEE);
        fees.setRegistrationFeeRelayer(relayer);
        registry.grantRole(registry.REGISTRAR_ROLE(), registrar);
        registry.grantRole(registry.OPERATOR_ROLE(), operator);

        tracks.registerVault(vault);
        _configureTrack(0, "CHALLENGE", IVaultTrackRegistry.CapitalMode.Simulated, 1000e6);
        _configureTrack(1, "FUNDED", IVaultTrackRegistry.CapitalMode.Real, 10_000e6);
        _configureTrack(2, "PRIME", IVaultTrackRegistry.CapitalMode.Real, 50_000e6);

        _fund(registrar);
        _fund(signer);
        _fund(stranger);
    }

    /// @dev A vault of a million USDC, and the router whose records decide on promotions.
    function _deployTrading() private {
        TokenRegistry tokens = new TokenRegistry(address(this), address(new PriceOracle(address(this))));
        vault = address(new MandateVault(address(this), address(usdc), "Vault", "VLT", "vault", address(tokens)));
        usdc.mint(address(this), 1_000_000e6);
        usdc.approve(vault, 1_000_000e6);
        MandateVault(vault).deposit(1_000_000e6, address(this));
        PositionManager positions = new PositionManager(address(this), address(registry), address(tracks));
        TradeRouter router = new TradeRouter(
            address(this),
            address(usdc),
            address(registry),
            address(allocations),
            address(positions),
            address(tracks),
            address(new TradePolicy(address(this)))
        );
        allocations.setTradeRouter(address(router));
        registry.setPromotionCriteria(address(new PromotionCriteria(address(registry))));
    }

    function _configureTrack(
        uint256 trackId,
        bytes32 name,
        IVaultTrackRegistry.CapitalMode capitalMode,
        uint256 allocation
    ) internal {
        tracks.setTrackType(
            IVaultTrackRegistry.TrackType({trackId: trackId, name: name, capitalMode: uint8(capitalMode), active: true})
        );
        IVaultTrackRegistry.VaultTrackConfig memory config;
        config.vault = vault;
        config.trackId = trackId;
        config.initialAllocation = allocation;
        config.maxAllocation = allocation;
        config.maxTradeSizeBps = 1000;
        config.active = true;
        tracks.setVaultTrackConfig(vault, trackId, config);
    }

    function _fund(address payer) internal {
        usdc.mint(payer, 100e6);
        vm.prank(payer);
        usdc.approve(address(fees), type(uint256).max);
    }

    /// @dev An agent of `owner` whose signer is `signer`, registered by the registrar.
    function _agentOf(address owner) internal returns (uint256 agentId) {
        vm.prank(registrar);
        return registry.registerAgent(owner, vault, NAME, URI, signer, false, 0);
    }

    function _identityOf(address owner) internal returns (uint256 erc8004AgentId) {
        vm.prank(owner);
        return identities.register();
    }

    function _sign(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }
}
