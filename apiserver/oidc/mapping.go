package oidc

import (
	"context"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/cel"

	"github.com/golang-jwt/jwt/v5"
)

// credentialID is the key of extra under which a token's id (jti) stands.
const credentialID = "authentication.kubernetes.io/credential-id"

// user makes the claims of a verified token a user, and asks the rules of the configuration.
func (i *issuer) user(ctx context.Context, claims jwt.MapClaims) (user authenticationv1.UserInfo, err error) {
	value := types.DefaultTypeAdapter.NativeToValue(map[string]any(claims)).(traits.Mapper)
	for _, step := range []func() error{
		func() (err error) { user.Username, err = i.username(ctx, claims, value); return err },
		func() (err error) { user.Groups, err = i.groups(ctx, claims, value); return err },
		func() (err error) { user.UID, err = i.uid(ctx, claims, value); return err },
		func() (err error) { user.Extra, err = i.extra(ctx, claims, value); return err },
		func() error { return i.checkClaims(ctx, claims, value) },
		func() error { return i.checkUser(ctx, &user) },
	} {
		if err := step(); err != nil {
			return authenticationv1.UserInfo{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return user, nil
}

func (i *issuer) username(ctx context.Context, claims jwt.MapClaims, value traits.Mapper) (string, error) {
	mapping := i.config.ClaimMappings.Username
	if i.mapping.Username != nil {
		name, err := evalString(ctx, i.mapping.Username, value)
		if err == nil && name == "" {
			err = fmt.Errorf("the username's expression gives an empty name")
		}
		return name, err
	}
	name, ok := claims[mapping.Claim].(string)
	if !ok || name == "" {
		return "", fmt.Errorf("claim %q is no name", mapping.Claim)
	}
	// OpenID Connect Core, 5.7: an address that is not verified may be anybody's.
	if verified, said := claims["email_verified"]; mapping.Claim == "email" && said && verified != true {
		return "", fmt.Errorf("the email address is not verified")
	}
	return prefixed(mapping.Prefix, name), nil
}

func (i *issuer) groups(ctx context.Context, claims jwt.MapClaims, value traits.Mapper) ([]string, error) {
	if i.mapping.Groups != nil {
		result, err := i.mapping.Groups.EvalClaimMapping(ctx, value)
		if err != nil {
			return nil, err
		}
		return stringsOf(result.EvalResult)
	}
	mapping := i.config.ClaimMappings.Groups
	claim, said := claims[mapping.Claim]
	if mapping.Claim == "" || !said {
		return nil, nil
	}
	groups, err := stringsOf(types.DefaultTypeAdapter.NativeToValue(claim))
	for n := range groups {
		groups[n] = prefixed(mapping.Prefix, groups[n])
	}
	return groups, err
}

func (i *issuer) uid(ctx context.Context, claims jwt.MapClaims, value traits.Mapper) (string, error) {
	if i.mapping.UID != nil {
		return evalString(ctx, i.mapping.UID, value)
	}
	claim := i.config.ClaimMappings.UID.Claim
	if claim == "" {
		return "", nil
	}
	uid, ok := claims[claim].(string)
	if !ok {
		return "", fmt.Errorf("claim %q is no uid", claim)
	}
	return uid, nil
}

func (i *issuer) extra(ctx context.Context, claims jwt.MapClaims, value traits.Mapper) (map[string]authenticationv1.ExtraValue, error) {
	extra := map[string]authenticationv1.ExtraValue{}
	if id, _ := claims["jti"].(string); id != "" {
		extra[credentialID] = authenticationv1.ExtraValue{"JTI=" + id}
	}
	if i.mapping.Extra == nil {
		return extra, nil
	}
	results, err := i.mapping.Extra.EvalClaimMappings(ctx, value)
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		values, err := stringsOf(result.EvalResult)
		if err != nil {
			return nil, err
		}
		if mapping, ok := result.ExpressionAccessor.(*cel.ExtraMappingExpression); ok && len(values) > 0 {
			extra[mapping.Key] = values
		}
	}
	return extra, nil
}

func (i *issuer) checkClaims(ctx context.Context, claims jwt.MapClaims, value traits.Mapper) error {
	for _, rule := range i.config.ClaimValidationRules {
		if rule.Claim == "" {
			continue
		}
		if got, ok := claims[rule.Claim].(string); !ok || got != rule.RequiredValue {
			return fmt.Errorf("claim %q is not what it must be", rule.Claim)
		}
	}
	if i.mapping.ClaimValidationRules == nil {
		return nil
	}
	results, err := i.mapping.ClaimValidationRules.EvalClaimMappings(ctx, value)
	if err != nil {
		return err
	}
	return allTrue(results)
}

func (i *issuer) checkUser(ctx context.Context, user *authenticationv1.UserInfo) error {
	if i.mapping.UserValidationRules == nil {
		return nil
	}
	value := map[string]any{"username": user.Username} // what is empty is left out, as in the object
	if user.UID != "" {
		value["uid"] = user.UID
	}
	if len(user.Groups) > 0 {
		value["groups"] = user.Groups
	}
	if len(user.Extra) > 0 {
		extra := map[string][]string{}
		for key, values := range user.Extra {
			extra[key] = values
		}
		value["extra"] = extra
	}
	results, err := i.mapping.UserValidationRules.EvalUser(ctx, types.DefaultTypeAdapter.NativeToValue(value).(traits.Mapper))
	if err != nil {
		return err
	}
	return allTrue(results)
}

func allTrue(results []cel.EvaluationResult) error {
	for _, result := range results {
		if result.EvalResult == types.True {
			continue
		}
		message := ""
		switch rule := result.ExpressionAccessor.(type) {
		case *cel.ClaimValidationCondition:
			message = rule.Message
		case *cel.UserValidationCondition:
			message = rule.Message
		}
		return fmt.Errorf("validation expression '%s' failed: %s", result.ExpressionAccessor.GetExpression(), message)
	}
	return nil
}

func evalString(ctx context.Context, mapper cel.ClaimsMapper, value traits.Mapper) (string, error) {
	result, err := mapper.EvalClaimMapping(ctx, value)
	if err != nil {
		return "", err
	}
	text, ok := result.EvalResult.Value().(string)
	if !ok || result.EvalResult.Type() != celgo.StringType {
		return "", fmt.Errorf("expression %q must give a string", result.ExpressionAccessor.GetExpression())
	}
	return text, nil
}

// stringsOf reads one string or a list of them; empty ones and null are nothing.
func stringsOf(value ref.Val) (out []string, err error) {
	one := func(v ref.Val) error {
		text, ok := v.Value().(string)
		if !ok {
			return fmt.Errorf("a string or a list of strings is needed")
		}
		if text != "" {
			out = append(out, text)
		}
		return nil
	}
	switch v := value.(type) {
	case types.Null:
		return nil, nil
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if err := one(it.Next()); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return out, one(value)
}

func prefixed(prefix *string, name string) string {
	if prefix == nil {
		return name
	}
	return *prefix + name
}
