// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ITokenRegistry} from "./interfaces/ITokenRegistry.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {PriceMath} from "./libraries/PriceMath.sol";
import {RollingBound} from "./libraries/RollingBound.sol";

/// @title The vault whose capital agents trade
/// @dev `IMandateVault` describes the functions.
contract MandateVault is IMandateVault, ERC4626, TwoStepAdmin {
    using Math for uint256;
    using RollingBound for RollingBound.Anchors;
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @dev One slot, read or written by every trade of the token.
    struct Holding {
        uint128 ledger;
        uint8 decimals;
        uint8 index;
        bool enabled;
        bool writtenOff;
    }

    /// @dev Shares that came in until `closesAt` and are locked until `unlocksAt`.
    struct Tranche {
        uint128 shares;
        uint40 closesAt;
        uint40 unlocksAt;
    }

    /// @dev A share price beyond the bound, and when it was first seen.
    struct Jump {
        uint96 price;
        uint40 seenAt;
    }

    struct ScheduledRouter {
        address router;
        uint40 effectiveAt;
    }

    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");
    bytes32 public constant GUARDIAN_ROLE = keccak256("GUARDIAN_ROLE");

    /// @notice How long a router is public before it can move what the vault holds, in seconds.
    uint256 public constant TRADE_ROUTER_DELAY = 1 days;

    /// @dev How long after its cooldown a jump is accepted. An old record would let a later jump in at once.
    uint256 private constant JUMP_EXPIRY = 1 hours;

    uint256 private constant MAX_FEE_BPS = 1_000;
    uint256 private constant MAX_TOKENS = 255;

    /// @dev An account has at most one lock more than this at a time.
    uint256 private constant TRANCHES_PER_HOLDING_TIME = 8;

    /// @dev Never a token's bit: keeps the mask's slot from going to zero and back, which costs more gas.
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

    LiquidityPolicy private _liquidityPolicy;
    RollingBound.Anchors private _sharePriceAnchors;
    Jump private _jump;
    ScheduledRouter private _scheduledRouter;
    mapping(address owner => Tranche[]) private _tranches;

    /// @dev Bit i is set while the vault holds some of the token at index i.
    uint256 private _heldMask = MASK_MARKER;

    modifier onlyTradeRouter() {
        _checkTradeRouter();
        _;
    }

    modifier whenLiquid() {
        _checkLiquid();
        // The share price is within its bound: a jump seen earlier did not hold.
        if (_jump.price != 0) delete _jump;
        _;
        _anchorSharePrice();
    }

    constructor(
        address admin,
        address asset_,
        string memory name_,
        string memory symbol_,
        bytes32 vaultName_,
        address tokenRegistry_
    ) ERC20(name_, symbol_) ERC4626(IERC20(asset_)) TwoStepAdmin(admin) {
        if (admin == address(0) || tokenRegistry_ == address(0)) revert ZeroAddress();
        uint8 decimals_ = IERC20Metadata(asset_).decimals();
        if (decimals_ != USDC_DECIMALS) revert InvalidAssetDecimals(decimals_);
        vaultName = vaultName_;
        tokenRegistry = tokenRegistry_;
        _followPriceOracle();
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
            enabled: true,
            writtenOff: false
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
    function setTradingPaused(bool paused) external {
        _checkPauser(paused);
        tradingPaused = paused;
        emit TradingPausedUpdated(paused);
    }

    /// @inheritdoc IMandateVault
    function setLiquidityPaused(bool paused) external {
        _checkPauser(paused);
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

        _depositFeeBps = depositFeeBps_.toUint16();
        _withdrawFeeBps = withdrawFeeBps_.toUint16();
        feeRecipient = recipient;

        emit FeesUpdated(depositFeeBps_, withdrawFeeBps_, recipient);
    }

    /// @inheritdoc IMandateVault
    function setLiquidityPolicy(LiquidityPolicy calldata policy) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if ((policy.maxMoveBps == 0) != (policy.moveWindow == 0)) revert InvalidLiquidityPolicy(policy);
        _liquidityPolicy = policy;
        emit LiquidityPolicyUpdated(policy);
        // The breaker counts from now on: without anchors the first price would pass whatever it is.
        delete _sharePriceAnchors;
        _anchorSharePrice();
    }

    /// @inheritdoc IMandateVault
    function setTokenWrittenOff(address token, bool writtenOff) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (!_isKnown(token)) revert TokenNotEnabled(token);
        Holding storage holding = _holdings[token];
        emit TokenWrittenOffUpdated(token, writtenOff, holding.ledger, _valueOf(token));
        holding.writtenOff = writtenOff;
    }

    /// @inheritdoc IMandateVault
    function checkpointSharePrice() external {
        _checkNoTrade();
        LiquidityPolicy memory policy = _liquidityPolicy;
        (bool jumped, uint256 anchor, uint96 price) = _checkSharePrice();
        if (!jumped) {
            delete _jump;
            _anchorSharePrice();
            return;
        }

        Jump memory jump = _jump;
        uint256 acceptedAt = uint256(jump.seenAt) + policy.moveCooldown;
        bool isOver = jump.price == 0 || block.timestamp > acceptedAt + JUMP_EXPIRY;
        if (isOver || RollingBound.isBeyond(jump.price, price, policy.maxMoveBps)) {
            _jump = Jump(price, block.timestamp.toUint40());
            emit SharePriceJumpSeen(anchor, price, block.timestamp + policy.moveCooldown);
        } else if (block.timestamp >= acceptedAt) {
            delete _jump;
            _sharePriceAnchors = RollingBound.Anchors(price, price, block.timestamp.toUint40());
            emit SharePriceJumpAccepted(price);
        }
    }

    /// @inheritdoc IMandateVault
    function scheduleTradeRouter(address router) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (router == address(0)) revert ZeroAddress();
        uint256 effectiveAt = block.timestamp + TRADE_ROUTER_DELAY;
        _scheduledRouter = ScheduledRouter(router, effectiveAt.toUint40());
        emit TradeRouterScheduled(router, effectiveAt);
    }

    /// @inheritdoc IMandateVault
    function setTradeRouter(address router) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (router == address(0)) revert ZeroAddress();
        if (tradeRouter != address(0)) {
            ScheduledRouter memory scheduled = _scheduledRouter;
            if (router != scheduled.router) revert TradeRouterNotScheduled(router);
            if (block.timestamp < scheduled.effectiveAt) revert TradeRouterDelayed(router, scheduled.effectiveAt);
        }
        delete _scheduledRouter;
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
    function syncPriceOracle() external onlyRole(DEFAULT_ADMIN_ROLE) {
        _followPriceOracle();
    }

    /// @inheritdoc IERC4626
    function totalAssets() public view override(ERC4626, IERC4626) returns (uint256 total) {
        total = idleAssets();
        uint256 held = _heldMask & ~MASK_MARKER;
        for (uint256 i; held != 0; ++i) {
            if (held & 1 != 0) {
                total += _valueOf(_allowedTokens[i]);
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
        return Math.min(previewRedeem(_availableShares(owner)), idle - _feeOf(idle, _withdrawFeeBps));
    }

    /// @inheritdoc IERC4626
    function maxRedeem(address owner) public view override(ERC4626, IERC4626) returns (uint256) {
        if (_isClosed()) return 0;
        return Math.min(_availableShares(owner), _convertToShares(idleAssets(), Math.Rounding.Floor));
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
        Holding memory holding = _holdings[token];
        return (priceOracle, _maxPriceAge, tradingPaused, holding.decimals, _isAllowed(token, holding));
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
    function isAllowedToken(address token) external view returns (bool) {
        return _isAllowed(token, _holdings[token]);
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
    function liquidityPolicy() external view returns (LiquidityPolicy memory) {
        return _liquidityPolicy;
    }

    /// @inheritdoc IMandateVault
    function lockedShares(address owner) public view returns (uint256 shares) {
        Tranche[] storage tranches = _tranches[owner];
        for (uint256 i = tranches.length; i != 0 && tranches[i - 1].unlocksAt > block.timestamp; --i) {
            shares += tranches[i - 1].shares;
        }
    }

    /// @inheritdoc IMandateVault
    function sharePriceBreaker() external view returns (SharePriceBreaker memory) {
        RollingBound.Anchors memory anchors = _sharePriceAnchors;
        (bool isOpen,,) = _checkSharePrice();
        uint256 acceptedAt = _jump.price == 0 ? 0 : uint256(_jump.seenAt) + _liquidityPolicy.moveCooldown;
        return SharePriceBreaker(anchors.older, anchors.newer, anchors.setAt, _jump.price, acceptedAt, isOpen);
    }

    /// @inheritdoc IMandateVault
    function isTokenWrittenOff(address token) external view returns (bool) {
        return _holdings[token].writtenOff;
    }

    /// @inheritdoc IMandateVault
    function scheduledTradeRouter() external view returns (address router, uint256 effectiveAt) {
        return (_scheduledRouter.router, _scheduledRouter.effectiveAt);
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
        _lock(receiver, shares);
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

    /// @dev Shares within their holding time neither move nor redeem; a transfer would be a way around the lock.
    function _update(address from, address to, uint256 shares) internal override {
        if (from != address(0)) {
            uint256 available = _availableShares(from);
            if (shares > available && shares <= balanceOf(from)) revert SharesLocked(from, available, shares);
        }
        super._update(from, to, shares);
    }

    function _lock(address owner, uint256 shares) private {
        uint256 holdingTime = _liquidityPolicy.holdingTime;
        if (holdingTime == 0) return;

        Tranche[] storage tranches = _tranches[owner];
        uint256 count = tranches.length;
        uint256 unlocksAt;
        // A lock is never extended, so nobody can keep another's shares locked by depositing dust for them.
        if (count != 0 && block.timestamp < tranches[count - 1].closesAt) {
            tranches[count - 1].shares += shares.toUint128();
            unlocksAt = tranches[count - 1].unlocksAt;
        } else {
            uint256 closesAt = block.timestamp + holdingTime / TRANCHES_PER_HOLDING_TIME;
            unlocksAt = closesAt + holdingTime;
            tranches.push(Tranche(shares.toUint128(), closesAt.toUint40(), unlocksAt.toUint40()));
        }
        emit SharesLockedUntil(owner, shares, unlocksAt);
    }

    /// @dev A recipient that cannot be paid must not keep anybody from withdrawing.
    function _payFee(uint256 fee) private {
        address recipient = feeRecipient;
        if (fee == 0 || recipient == address(0)) return;
        if (!IERC20(asset()).trySafeTransfer(recipient, fee)) emit FeeRetained(recipient, fee);
    }

    function _followPriceOracle() private {
        address current = priceOracle;
        address next = ITokenRegistry(tokenRegistry).priceOracle();
        if (next == address(0)) revert ZeroAddress();
        for (uint256 i; i < _allowedTokens.length; ++i) {
            address token = _allowedTokens[i];
            (,, uint80 offered) = IPriceOracle(next).peekPrice(token);
            uint80 held = _roundAt(current, token);
            if (offered < held) revert OracleRoundsBehind(token, held, offered);
        }
        emit PriceOracleUpdated(current, next);
        priceOracle = next;
    }

    /// @dev An oracle that does not answer must not keep the vault from leaving it.
    function _roundAt(address oracle, address token) private view returns (uint80) {
        try IPriceOracle(oracle).peekPrice(token) returns (uint256, uint64, uint80 round) {
            return round;
        } catch {
            return 0;
        }
    }

    /// @dev Moves the anchors of the breaker on, as far as the time that has passed allows.
    function _anchorSharePrice() private {
        uint256 window = _liquidityPolicy.moveWindow;
        RollingBound.Anchors memory held = _sharePriceAnchors;
        if (window == 0 || totalSupply() == 0) {
            if (held.newer != 0) delete _sharePriceAnchors;
            return;
        }
        RollingBound.Anchors memory anchors = held.advanced(_sharePrice(), window, block.timestamp);
        if (anchors.setAt != held.setAt) _sharePriceAnchors = anchors;
    }

    function _pullToken(address token, address to, uint256 amount) private {
        Holding storage holding = _holdings[token];
        uint256 ledger = holding.ledger;
        if (amount > ledger) revert InsufficientLedger(token, ledger, amount);

        holding.ledger = (ledger - amount).toUint128();
        if (amount == ledger) _heldMask &= ~_bitOf(holding.index);

        IERC20(token).safeTransfer(to, amount);
    }

    function _isAllowed(address token, Holding memory holding) private view returns (bool) {
        return holding.enabled && !holding.writtenOff && ITokenRegistry(tokenRegistry).isTokenActive(token);
    }

    /// @dev USDC that what agents hold of the token counts for.
    function _valueOf(address token) private view returns (uint256) {
        Holding memory holding = _holdings[token];
        if (holding.writtenOff) return 0;
        (uint256 price,,) = IPriceOracle(priceOracle).peekPrice(token);
        return PriceMath.usdcValue(holding.ledger, price, holding.decimals);
    }

    /// @dev Shares are neither made nor redeemed while their price is not known.
    function _isClosed() private view returns (bool) {
        if (liquidityPaused) return true;
        uint256 maxAge = _liquidityPolicy.maxPriceAge;
        if (maxAge == 0 || (_maxPriceAge != 0 && _maxPriceAge < maxAge)) maxAge = _maxPriceAge;
        uint256 held = _heldMask & ~MASK_MARKER;
        for (uint256 i; held != 0; ++i) {
            if (held & 1 != 0) {
                address token = _allowedTokens[i];
                if (!_holdings[token].writtenOff && !IPriceOracle(priceOracle).isReliable(token, maxAge)) return true;
            }
            held >>= 1;
        }
        (bool jumped,,) = _checkSharePrice();
        return jumped;
    }

    /// @dev Whether the share price has left the breaker's bound, which anchor it left, and where it stands.
    function _checkSharePrice() private view returns (bool jumped, uint256 anchor, uint96 price) {
        price = _sharePrice();
        uint256 maxMoveBps = _liquidityPolicy.maxMoveBps;
        if (maxMoveBps == 0 || totalSupply() == 0) return (false, price, price);
        bool isWithin;
        (isWithin, anchor) = _sharePriceAnchors.check(price, maxMoveBps);
        jumped = !isWithin;
    }

    /// @dev USDC base units per whole share.
    function _sharePrice() private view returns (uint96) {
        return Math.min(convertToAssets(10 ** decimals()), type(uint96).max).toUint96();
    }

    function _availableShares(address owner) private view returns (uint256) {
        return balanceOf(owner) - lockedShares(owner);
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

    /// @dev Stopping is for the guardian and the operator, resuming for the operator.
    function _checkPauser(bool paused) private view {
        if (!paused || !hasRole(GUARDIAN_ROLE, msg.sender)) _checkRole(OPERATOR_ROLE);
    }

    function _checkLiquid() private view {
        if (liquidityPaused) revert LiquidityPaused();
        _checkNoTrade();
        (bool jumped, uint256 anchor, uint256 price) = _checkSharePrice();
        if (jumped) revert SharePriceJumped(anchor, price, _liquidityPolicy.maxMoveBps);
    }

    function _checkNoTrade() private view {
        address router = tradeRouter;
        if (router.code.length != 0 && ITradeRouter(router).tradeInProgress()) revert TradeInProgress();
    }
}
