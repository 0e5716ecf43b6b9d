// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ITokenRegistry} from "./interfaces/ITokenRegistry.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {PriceMath} from "./libraries/PriceMath.sol";

/// @title The vault whose capital agents trade
/// @dev What the functions do is said in `IMandateVault`.
contract MandateVault is IMandateVault, ERC4626, AccessControl {
    using Math for uint256;
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @dev One slot, read or written by every trade of the token.
    struct Holding {
        uint128 ledger;
        uint8 decimals;
        uint8 index;
        bool enabled;
    }

    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");

    uint256 private constant MAX_FEE_BPS = 1_000;
    uint256 private constant MAX_TOKENS = 255;

    /// @dev Never a token's bit: keeps the mask's slot from going to zero and back, which is dear.
    uint256 private constant MASK_MARKER = 1 << 255;
    uint8 private constant USDC_DECIMALS = 6;

    /// @inheritdoc IMandateVault
    bytes32 public immutable vaultName;

    /// @inheritdoc IMandateVault
    address public immutable tokenRegistry;

    /// @inheritdoc IMandateVault
    address public priceOracle;
    uint32 private _maxPriceAge;
    uint16 private _depositFeeBps;
    uint16 private _withdrawFeeBps;

    /// @inheritdoc IMandateVault
    bool public tradingPaused;

    /// @inheritdoc IMandateVault
    bool public liquidityPaused;

    /// @inheritdoc IMandateVault
    address public tradeRouter;

    /// @inheritdoc IMandateVault
    address public feeRecipient;

    mapping(address token => Holding) private _holdings;
    address[] private _allowedTokens;

    /// @dev Bit i is set while the vault holds some of the token at index i.
    uint256 private _heldMask = MASK_MARKER;

    modifier onlyTradeRouter() {
        _checkTradeRouter();
        _;
    }

    modifier whenLiquid() {
        _checkLiquid();
        _;
    }

    constructor(
        address admin,
        address asset_,
        string memory name_,
        string memory symbol_,
        bytes32 vaultName_,
        address tokenRegistry_
    ) ERC20(name_, symbol_) ERC4626(IERC20(asset_)) {
        if (admin == address(0) || tokenRegistry_ == address(0)) revert ZeroAddress();
        uint8 decimals_ = IERC20Metadata(asset_).decimals();
        if (decimals_ != USDC_DECIMALS) revert InvalidAssetDecimals(decimals_);
        vaultName = vaultName_;
        tokenRegistry = tokenRegistry_;
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
        syncPriceOracle();
    }

    /// @inheritdoc IMandateVault
    function enableToken(address token) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (token == asset()) revert AssetNotTradable(token);
        if (!ITokenRegistry(tokenRegistry).isTokenActive(token)) revert TokenNotActive(token);
        if (_isKnown(token)) revert TokenAlreadyEnabled(token);
        uint256 index = _allowedTokens.length;
        if (index == MAX_TOKENS) revert TooManyTokens(MAX_TOKENS);

        _allowedTokens.push(token);
        _holdings[token] = Holding({
            ledger: 0,
            decimals: ITokenRegistry(tokenRegistry).tokenDecimals(token),
            index: index.toUint8(),
            enabled: true
        });

        emit TokenEnabledUpdated(token, true);
    }

    /// @inheritdoc IMandateVault
    function setTokenEnabled(address token, bool enabled) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (!_isKnown(token)) revert TokenNotEnabled(token);
        _holdings[token].enabled = enabled;
        emit TokenEnabledUpdated(token, enabled);
    }

    /// @inheritdoc IMandateVault
    function setMaxPriceAge(uint256 maxPriceAge_) external onlyRole(DEFAULT_ADMIN_ROLE) {
        emit MaxPriceAgeUpdated(_maxPriceAge, maxPriceAge_);
        _maxPriceAge = maxPriceAge_.toUint32();
    }

    /// @inheritdoc IMandateVault
    function setTradingPaused(bool paused) external onlyRole(OPERATOR_ROLE) {
        tradingPaused = paused;
        emit TradingPausedUpdated(paused);
    }

    /// @inheritdoc IMandateVault
    function setLiquidityPaused(bool paused) external onlyRole(OPERATOR_ROLE) {
        liquidityPaused = paused;
        emit LiquidityPausedUpdated(paused);
    }

    /// @inheritdoc IMandateVault
    function setFees(uint256 depositFeeBps_, uint256 withdrawFeeBps_, address recipient)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        if (depositFeeBps_ > MAX_FEE_BPS) revert FeeTooHigh(depositFeeBps_, MAX_FEE_BPS);
        if (withdrawFeeBps_ > MAX_FEE_BPS) revert FeeTooHigh(withdrawFeeBps_, MAX_FEE_BPS);
        if (recipient == address(0) && depositFeeBps_ + withdrawFeeBps_ != 0) revert ZeroAddress();

        _depositFeeBps = depositFeeBps_.toUint16();
        _withdrawFeeBps = withdrawFeeBps_.toUint16();
        feeRecipient = recipient;

        emit FeesUpdated(depositFeeBps_, withdrawFeeBps_, recipient);
    }

    /// @inheritdoc IMandateVault
    function setTradeRouter(address router) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (router == address(0)) revert ZeroAddress();
        emit TradeRouterUpdated(tradeRouter, router);
        tradeRouter = router;
    }

    /// @inheritdoc IMandateVault
    function pullAssetsForTrade(address to, uint256 amount) external onlyTradeRouter {
        if (tradingPaused) revert TradingPaused();
        IERC20(asset()).safeTransfer(to, amount);
    }

    /// @inheritdoc IMandateVault
    function pullTokenForTrade(address token, address to, uint256 amount) external onlyTradeRouter {
        if (tradingPaused) revert TradingPaused();
        _pullToken(token, to, amount);
    }

    /// @inheritdoc IMandateVault
    function pullTokenForForceClose(address token, address to, uint256 amount) external onlyTradeRouter {
        _pullToken(token, to, amount);
    }

    /// @inheritdoc IMandateVault
    function recordTokenBought(address token, uint256 amount) external onlyTradeRouter returns (uint256 ledger) {
        Holding storage holding = _holdings[token];
        if (holding.ledger == 0) _heldMask |= _bitOf(holding.index);
        ledger = holding.ledger + amount;
        holding.ledger = ledger.toUint128();
    }

    /// @inheritdoc IERC4626
    function deposit(uint256 assets, address receiver) public override(ERC4626, IERC4626) whenLiquid returns (uint256) {
        return super.deposit(assets, receiver);
    }

    /// @inheritdoc IERC4626
    function mint(uint256 shares, address receiver) public override(ERC4626, IERC4626) whenLiquid returns (uint256) {
        return super.mint(shares, receiver);
    }

    /// @inheritdoc IERC4626
    function withdraw(uint256 assets, address receiver, address owner)
        public
        override(ERC4626, IERC4626)
        whenLiquid
        returns (uint256)
    {
        return super.withdraw(assets, receiver, owner);
    }

    /// @inheritdoc IERC4626
    function redeem(uint256 shares, address receiver, address owner)
        public
        override(ERC4626, IERC4626)
        whenLiquid
        returns (uint256)
    {
        return super.redeem(shares, receiver, owner);
    }

    /// @inheritdoc IMandateVault
    function syncPriceOracle() public {
        address oracle = ITokenRegistry(tokenRegistry).priceOracle();
        if (oracle == address(0)) revert ZeroAddress();
        emit PriceOracleUpdated(priceOracle, oracle);
        priceOracle = oracle;
    }

    /// @inheritdoc IERC4626
    function totalAssets() public view override(ERC4626, IERC4626) returns (uint256 total) {
        total = idleAssets();
        uint256 held = _heldMask & ~MASK_MARKER;
        for (uint256 i; held != 0; ++i) {
            if (held & 1 != 0) {
                address token = _allowedTokens[i];
                Holding storage holding = _holdings[token];
                (uint256 price,,) = IPriceOracle(priceOracle).peekPrice(token);
                total += PriceMath.usdcValue(holding.ledger, price, holding.decimals);
            }
            held >>= 1;
        }
    }

    /// @inheritdoc IERC4626
    function maxDeposit(address receiver) public view override(ERC4626, IERC4626) returns (uint256) {
        return _isClosed() ? 0 : super.maxDeposit(receiver);
    }

    /// @inheritdoc IERC4626
    function maxMint(address receiver) public view override(ERC4626, IERC4626) returns (uint256) {
        return _isClosed() ? 0 : super.maxMint(receiver);
    }

    /// @inheritdoc IERC4626
    function maxWithdraw(address owner) public view override(ERC4626, IERC4626) returns (uint256) {
        if (_isClosed()) return 0;
        uint256 idle = idleAssets();
        return Math.min(previewRedeem(balanceOf(owner)), idle - _feeOf(idle, _withdrawFeeBps));
    }

    /// @inheritdoc IERC4626
    function maxRedeem(address owner) public view override(ERC4626, IERC4626) returns (uint256) {
        if (_isClosed()) return 0;
        return Math.min(balanceOf(owner), _convertToShares(idleAssets(), Math.Rounding.Floor));
    }

    /// @inheritdoc IERC4626
    function previewDeposit(uint256 assets) public view override(ERC4626, IERC4626) returns (uint256) {
        return super.previewDeposit(assets - _feeOf(assets, _depositFeeBps));
    }

    /// @inheritdoc IERC4626
    function previewMint(uint256 shares) public view override(ERC4626, IERC4626) returns (uint256) {
        return _grossOf(super.previewMint(shares), _depositFeeBps);
    }

    /// @inheritdoc IERC4626
    function previewWithdraw(uint256 assets) public view override(ERC4626, IERC4626) returns (uint256) {
        return super.previewWithdraw(_grossOf(assets, _withdrawFeeBps));
    }

    /// @inheritdoc IERC4626
    function previewRedeem(uint256 shares) public view override(ERC4626, IERC4626) returns (uint256) {
        uint256 assets = super.previewRedeem(shares);
        return assets - _feeOf(assets, _withdrawFeeBps);
    }

    /// @inheritdoc IERC20Metadata
    function decimals() public view override(ERC4626, IERC20Metadata) returns (uint8) {
        return super.decimals();
    }

    /// @inheritdoc IMandateVault
    function buyContextOf(address token)
        external
        view
        returns (address oracle, uint256 maxAge, bool paused, uint8 tokenDecimals, bool allowed)
    {
        return (priceOracle, _maxPriceAge, tradingPaused, _holdings[token].decimals, isAllowedToken(token));
    }

    /// @inheritdoc IMandateVault
    function sellContextOf(address token)
        external
        view
        returns (address oracle, uint256 maxAge, bool paused, uint8 tokenDecimals)
    {
        return (priceOracle, _maxPriceAge, tradingPaused, _holdings[token].decimals);
    }

    /// @inheritdoc IMandateVault
    function isAllowedToken(address token) public view returns (bool) {
        return _holdings[token].enabled && ITokenRegistry(tokenRegistry).isTokenActive(token);
    }

    /// @inheritdoc IMandateVault
    function allowedTokenAt(uint256 index) external view returns (address) {
        return _allowedTokens[index];
    }

    /// @inheritdoc IMandateVault
    function allowedTokenCount() external view returns (uint256) {
        return _allowedTokens.length;
    }

    /// @inheritdoc IMandateVault
    function tokenLedger(address token) external view returns (uint256) {
        return _holdings[token].ledger;
    }

    /// @inheritdoc IMandateVault
    function assetDecimals() external pure returns (uint8) {
        return USDC_DECIMALS;
    }

    /// @inheritdoc IMandateVault
    function idleAssets() public view returns (uint256) {
        return IERC20(asset()).balanceOf(address(this));
    }

    /// @inheritdoc IMandateVault
    function maxPriceAge() external view returns (uint256) {
        return _maxPriceAge;
    }

    /// @inheritdoc IMandateVault
    function depositFeeBps() external view returns (uint256) {
        return _depositFeeBps;
    }

    /// @inheritdoc IMandateVault
    function withdrawFeeBps() external view returns (uint256) {
        return _withdrawFeeBps;
    }

    /// @dev `assets` is what the caller pays, the fee included.
    function _deposit(address caller, address receiver, uint256 assets, uint256 shares) internal override {
        super._deposit(caller, receiver, assets, shares);
        _payFee(_feeOf(assets, _depositFeeBps));
    }

    /// @dev `assets` is what the receiver gets, the fee left aside.
    function _withdraw(address caller, address receiver, address owner, uint256 assets, uint256 shares)
        internal
        override
    {
        super._withdraw(caller, receiver, owner, assets, shares);
        _payFee(_grossOf(assets, _withdrawFeeBps) - assets);
    }

    /// @dev Six more decimals than USDC: inflating the price of the first share costs a million times what it takes.
    function _decimalsOffset() internal pure override returns (uint8) {
        return 6;
    }

    function _payFee(uint256 fee) private {
        if (fee != 0) IERC20(asset()).safeTransfer(feeRecipient, fee);
    }

    function _pullToken(address token, address to, uint256 amount) private {
        Holding storage holding = _holdings[token];
        uint256 ledger = holding.ledger;
        if (amount > ledger) revert InsufficientLedger(token, ledger, amount);

        holding.ledger = (ledger - amount).toUint128();
        if (amount == ledger) _heldMask &= ~_bitOf(holding.index);

        IERC20(token).safeTransfer(to, amount);
    }

    /// @dev Shares are neither made nor redeemed while their price is not known.
    function _isClosed() private view returns (bool) {
        if (liquidityPaused) return true;
        uint256 held = _heldMask & ~MASK_MARKER;
        for (uint256 i; held != 0; ++i) {
            if (held & 1 != 0 && IPriceOracle(priceOracle).isStale(_allowedTokens[i], _maxPriceAge)) return true;
            held >>= 1;
        }
        return false;
    }

    function _isKnown(address token) private view returns (bool) {
        uint256 index = _holdings[token].index;
        return index < _allowedTokens.length && _allowedTokens[index] == token;
    }

    function _bitOf(uint256 index) private pure returns (uint256) {
        // forge-lint: disable-next-line(incorrect-shift)
        return 1 << index;
    }

    /// @dev The fee within an amount that includes it, rounded up.
    function _feeOf(uint256 gross, uint256 feeBps) private pure returns (uint256) {
        return gross.mulDiv(feeBps, PriceMath.BPS, Math.Rounding.Ceil);
    }

    /// @dev The least amount that leaves `net` after the fee.
    function _grossOf(uint256 net, uint256 feeBps) private pure returns (uint256) {
        return net.mulDiv(PriceMath.BPS, PriceMath.BPS - feeBps, Math.Rounding.Ceil);
    }

    function _checkTradeRouter() private view {
        if (msg.sender != tradeRouter) revert OnlyTradeRouter(msg.sender);
    }

    function _checkLiquid() private view {
        if (liquidityPaused) revert LiquidityPaused();
        address router = tradeRouter;
        if (router.code.length != 0 && ITradeRouter(router).tradeInProgress()) revert TradeInProgress();
    }
}
